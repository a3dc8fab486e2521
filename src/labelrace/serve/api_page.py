"""The page of the API: its OpenAPI as a page that loads nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import Any

import jinja2
from fastapi import FastAPI
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse


def add_api_page(app: FastAPI) -> None:
    """Add ``/docs`` to an application."""
    page: HTMLResponse | None = None

    @app.get("/docs", include_in_schema=False)
    async def show_api() -> HTMLResponse:
        nonlocal page
        if page is None:
            style = (resources.files("labelrace.serve") / "templates" / "api.css").read_text(encoding="utf-8")
            digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
            policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; frame-ancestors 'none'"
            page = HTMLResponse(render(app.openapi(), style), headers={"Content-Security-Policy": policy})
        return page


def render(schema: dict[str, Any], style: str) -> str:
    """Return the page of an OpenAPI as text."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("labelrace.serve"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["with_code"] = _with_code
    schemas = schema["components"]["schemas"]
    groups = dict[str, list[dict[str, Any]]]()
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            group = groups.setdefault(operation.get("tags", ["other"])[0], [])
            group.append(_described(method.upper(), path, operation))
    forms = {name: _fields(form) for name, form in sorted(schemas.items()) if form.get("properties")}
    return environment.get_template("api.html").render(
        title=schema["info"]["title"],
        version=schema["info"]["version"],
        groups=groups,
        forms=forms,
        texts={name: form.get("description", "") for name, form in schemas.items()},
        examples={name: json.dumps(form["example"]) for name, form in schemas.items() if "example" in form},
        style=Markup(style),
    )


def _with_code(text: str) -> Markup:
    """Return a text in which names between backticks are code.

    Examples
    --------
    >>> print(_with_code("`a` < `b`"))
    <code>a</code> &lt; <code>b</code>
    """
    parts = enumerate(text.split("`"))
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in parts)


def _described(method: str, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    answers = [
        (status, _kind(_content(answer).get("schema", {})), answer["description"])
        for status, answer in sorted(operation["responses"].items())
    ]
    parameters = [
        (one["name"], one["in"], _kind(one["schema"]), one["schema"].get("default"), one.get("description", ""))
        for one in operation.get("parameters", ())
    ]
    return {
        "method": method,
        "path": path,
        "text": operation.get("description", ""),
        "parameters": parameters,
        "body": _kind(body) if body else "",
        "answer": answers[0],
        "problems": [(status, text) for status, _, text in answers[1:]],
    }


def _content(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the content of an answer, in its only media type."""
    kinds: list[dict[str, Any]] = list(answer.get("content", {}).values())
    return kinds[0] if kinds else {}


def _fields(form: dict[str, Any]) -> list[tuple[str, str, bool, str]]:
    """Return the fields of a form: name, kind, whether it is required, description."""
    required = form.get("required", ())
    fields = [
        (name, _kind(field), name in required, field.get("description", ""))
        for name, field in form["properties"].items()
    ]
    others = form.get("additionalProperties")
    return [*fields, ("…", _kind(others), False, "any other name")] if isinstance(others, dict) else fields


def _kind(schema: dict[str, Any]) -> str:
    """Return the kind of a value in words; names of forms are those of the page.

    Examples
    --------
    >>> _kind({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}})
    'list of (text or null)'
    """
    names = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " or ".join(map(json.dumps, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if schema.get("type") == "array":
        items = _kind(schema.get("items", {})) or "values"
        return f"list of ({items})" if " or " in items else f"list of {items}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"object of {_kind(values)}" if isinstance(values, dict) and values else "object"
    return names.get(schema.get("type", ""), schema.get("type", ""))
