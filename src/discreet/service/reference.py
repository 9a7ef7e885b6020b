"""The description of the interface as a page that needs no script and no other host."""

from __future__ import annotations

from html import escape
from typing import Any

__all__ = ["reference_page"]


def reference_page(openapi: dict[str, Any]) -> str:
    """A page of what `/openapi.json` has."""
    parts = []
    for path, methods in openapi["paths"].items():
        for method, route in methods.items():
            parts.append(_route(path, method, route))
    shapes = openapi.get("components", {}).get("schemas", {})
    for name, shape in shapes.items():
        parts.append(_shape(name, shape))
    info = openapi["info"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(info['title'])}: interface</title></head><body><main>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info.get('description', ''))} "
        '<a href="/openapi.json">openapi.json</a></p>' + "".join(parts) + "</main></body></html>"
    )


def _route(path: str, method: str, route: dict[str, Any]) -> str:
    rows = "".join(
        f"<li><code>{escape(p['name'])}</code> ({escape(p['in'])}) {escape(p.get('description', ''))}</li>"
        for p in route.get("parameters", [])
    )
    bodies = route.get("requestBody", {}).get("content", {})
    takes = f"<p>Takes {', '.join(f'<code>{escape(kind)}</code>' for kind in bodies)}.</p>" if bodies else ""
    answers = "".join(
        f"<li><code>{escape(str(status))}</code> {escape(answer.get('description', ''))}{_of(answer)}</li>"
        for status, answer in route.get("responses", {}).items()
    )
    return (
        f"<section><h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
        f"<p>{escape(route.get('description', route.get('summary', '')))}</p>"
        + (f"<ul>{rows}</ul>" if rows else "")
        + takes
        + f"<ul>{answers}</ul></section>"
    )


def _of(answer: dict[str, Any]) -> str:
    for content in answer.get("content", {}).values():
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        if name:
            return f': <a href="#{escape(name)}">{escape(name)}</a>'
    return ""


def _shape(name: str, shape: dict[str, Any]) -> str:
    rows = "".join(
        f"<li><code>{escape(field)}</code>{'' if field in shape.get('required', []) else ' (may be left out)'}</li>"
        for field in shape.get("properties", {})
    )
    return (
        f'<section><h2 id="{escape(name)}">{escape(name)}</h2><p>{escape(shape.get("description", ""))}</p>'
        f"<ul>{rows}</ul></section>"
    )
