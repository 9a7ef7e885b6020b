"""The description of the interface as a page that needs no script and no other host."""

from __future__ import annotations

from html import escape
from typing import Any


def reference_page(openapi: dict[str, Any]) -> str:
    """A page of what `/openapi.json` has, in the style of the service's other pages."""
    routes = [
        _route(path, method, route) for path, methods in openapi["paths"].items() for method, route in methods.items()
    ]
    shapes = [_shape(name, shape) for name, shape in openapi.get("components", {}).get("schemas", {}).items()]
    info = openapi["info"]
    title = escape(info["title"])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<link rel="icon" href="/static/icon.svg" type="image/svg+xml"><link rel="stylesheet" href="/static/page.css">'
        f"<title>{title}: interface</title></head><body>"
        '<a class="skip" href="#main">Skip to the interface</a><header class="top"><a class="mark" href="/">'
        '<img src="/static/icon.svg" alt="" width="28" height="28">discreet</a></header>'
        '<main id="main" class="reference" tabindex="-1">'
        f'<h1>Interface</h1><p class="lead">{title} {escape(info["version"])}. {escape(info.get("description", ""))} '
        'For programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f"{''.join(routes)}<h2>What is in the answers</h2>{''.join(shapes)}</main></body></html>"
    )


def _list(rows: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{row}</li>' for row in rows)}</ul>" if rows else ""


def _route(path: str, method: str, route: dict[str, Any]) -> str:
    parameters = [
        f"<code>{escape(p['name'])}</code> in the {escape(p['in'])}. {escape(p.get('description', ''))}"
        for p in route.get("parameters", [])
    ]
    bodies = route.get("requestBody", {}).get("content", {})
    takes = f"<p>Takes {', '.join(f'<code>{escape(kind)}</code>' for kind in bodies)}.</p>" if bodies else ""
    answers = [
        f"<code>{escape(str(status))}</code> {escape(answer.get('description', ''))}{_of(answer)}"
        for status, answer in route.get("responses", {}).items()
    ]
    words = escape(route.get("description", route.get("summary", "")))
    verb, place = escape(method.upper()), escape(path)
    return (
        f'<section class="panel"><h2><span class="method">{verb}</span> <code>{place}</code></h2>'
        f"<p>{words}</p>{_list(parameters)}{takes}"
        f"<details><summary>Answers of {verb} {place}</summary>{_list(answers)}</details></section>"
    )


def _of(answer: dict[str, Any]) -> str:
    for content in answer.get("content", {}).values():
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        if name:
            return f': <a href="#{escape(name)}">{escape(name)}</a>'
    return ""


def _shape(name: str, shape: dict[str, Any]) -> str:
    required = shape.get("required", [])
    fields = [
        f"<code>{escape(field)}</code>{'' if field in required else ' (may be left out)'}"
        for field in shape.get("properties", {})
    ]
    words = escape(shape.get("description", ""))
    return f'<section class="panel" id="{escape(name)}"><h3>{escape(name)}</h3><p>{words}</p>{_list(fields)}</section>'
