"""Items as labels: on one line, short, and still different from each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

_JOINERS = "\u200c\u200d"  # which words and emoji are written with; other characters without a shape are spelled


def readable(item: Any) -> str:
    """An item on one line, without characters that have no shape or turn others around; of several, all of them."""
    return " · ".join(map(readable, item)) if isinstance(item, tuple) else printable(item, _JOINERS)


def printable(value: Any, kept: str = "") -> str:
    """A value on one line, without characters that a terminal would act on, except for those that are `kept`."""
    text = value.hex() if isinstance(value, bytes) else str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def cut(texts: Sequence[str], most: int) -> list[str]:
    """Labels of at most `most` characters, all different, one for each text.

    A long text keeps its beginning, or, where others begin alike, its beginning and its end. Labels that are still the
    same (and items that look the same: 1 and "1") are numbered in their order.
    """
    labels = [text if len(text) <= most else text[: most - 1] + "…" for text in texts]
    many = Counter(labels)
    labels = [
        _both_ends(text, most) if len(text) > most and many[label] > 1 else label
        for text, label in zip(texts, labels, strict=True)
    ]
    many = Counter(labels)
    taken = {label for label in labels if many[label] == 1}
    number: Counter[str] = Counter()
    for place, label in enumerate(labels):
        while many[label] > 1 and labels[place] not in taken:
            number[label] += 1
            mark = f" ({number[label]})"
            numbered = label[: most - len(mark)] + mark
            if numbered not in taken:
                labels[place] = numbered
                taken.add(numbered)
    return labels


def short(texts: Sequence[str], most: int) -> list[str]:
    """Labels of at most `most` characters, the same for texts that are the same."""
    different = list(dict.fromkeys(texts))
    labels = dict(zip(different, cut(different, most), strict=True))
    return [labels[text] for text in texts]


def _both_ends(text: str, most: int) -> str:
    end = (most - 1) // 2
    return text[: most - 1 - end] + "…" + text[len(text) - end :]
