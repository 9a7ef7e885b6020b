"""A number and its interval as a bar in HTML.

No script, no style sheet and no other host: a notebook may be kept for years, and may strip what is not an attribute.
Colours are those of the page where they can be, so that a bar is seen on a light ground as on a dark one.
"""

from __future__ import annotations

import html
import math

_ROOM = 1.08  # beside what is known, for the arrow of an unknown end


def amount(number: float) -> str:
    """A number for people; a question mark where it is not known."""
    if not math.isfinite(number):
        return "?"
    return f"{number:,.0f}" if float(number).is_integer() or abs(number) >= 1000 else f"{number:,.4g}"


def between(lower: float, upper: float) -> str:
    """An interval for people."""
    if not math.isfinite(upper):
        return f"at least {amount(lower)}" if math.isfinite(lower) else "not known"
    return f"{amount(lower)} to {amount(upper)}" if math.isfinite(lower) else f"at most {amount(upper)}"


def reach(values: list[float], uppers: list[float]) -> float:
    """Where the right end of all bars lies: what is known fits, and an arrow goes on from there."""
    known = [number for number in (*values, *uppers) if math.isfinite(number)]
    return max(max(known, default=0.0), 0.0) * (1.0 if all(map(math.isfinite, uppers)) else _ROOM) or 1.0


def interval_bar(value: float, lower: float, upper: float, right: float) -> str:
    """A bar from 0 to the value, and a line over its interval with an end at each side, or an arrow where none is."""
    known = math.isfinite(upper)
    start, end = _percent(max(lower, 0.0) if math.isfinite(lower) else 0.0, right), _percent(upper, right)
    parts = [
        f'<span style="left:0;top:15%;height:70%;width:{_percent(value, right):.4g}%;background:#4a86c5;'
        'border-radius:0 2px 2px 0;position:absolute"></span>',
        _line(f"left:{start:.4g}%;width:{max(end - start, 0.0):.4g}%;top:calc(50% - .5px);border-top:1px solid"),
        _line(f"left:{start:.4g}%;top:30%;height:40%;border-left:1px solid"),
        _line(f"left:calc({end:.4g}% - 1px);top:30%;height:40%;border-left:1px solid")
        if known
        else _line(
            "right:0;top:calc(50% - 4px);border-left:7px solid;border-top:4px solid transparent;"
            "border-bottom:4px solid transparent"
        ),
    ]
    words = html.escape(f"{amount(value)}, {between(lower, upper)}", quote=True)
    return (
        f'<span role="img" aria-label="{words}" title="{words}" style="position:relative;display:inline-block;'
        f'width:100%;min-width:12em;height:1.1em;vertical-align:middle">{"".join(parts)}</span>'
    )


def _line(style: str) -> str:
    return f'<span style="position:absolute;{style}"></span>'


def _percent(number: float, right: float) -> float:
    return 100.0 if not math.isfinite(number) else 100.0 * min(max(number / right, 0.0), 1.0)


def guarantee_html(sentence: str, seeded: bool) -> str:
    """What is promised, below; a warning stands out."""
    style = "color:#d0342c;font-weight:600" if seeded else "opacity:.75"
    return f'<div style="font-size:90%;max-width:46em;margin-top:.4em;{style}">{html.escape(sentence)}</div>'
