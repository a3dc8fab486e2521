"""The page of the service's HTTP API, from its OpenAPI."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from typing import Any

from markdown_table import table

from labelrace.serve.api import make_app
from labelrace.serve.service import open_service


def http_api() -> str:
    """Return the page."""
    schema = _open_api()
    requests = [
        part
        for path, methods in schema["paths"].items()
        for method, one in methods.items()
        for part in _request(f"{method.upper()} {path}", one)
    ]
    forms = [part for name, form in schema["components"]["schemas"].items() for part in _form(name, form)]
    about = schema["info"].get("description", "")
    head = ["<!-- made by docs/_ext/http_page.py -->\n", "# The HTTP API\n", f"{about}\n"]
    return "\n".join([*head, *requests, "## Forms\n", *forms])


def _request(title: str, one: dict[str, Any]) -> Iterator[str]:
    yield f"## {title}\n\n{one.get('description') or one.get('summary', '')}\n"
    parameters = one.get("parameters", ())
    rows = ((f"`{each['name']}`", each["in"], each.get("description", "")) for each in parameters)
    yield table(("parameter", "in", ""), rows)
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        yield f"Body: {_kind(body)}\n"
    answers = one["responses"].items()
    yield table(("answer", ""), ((str(status), answer["description"]) for status, answer in answers))


def _form(name: str, form: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}\n\n{form.get('description', '')}\n"
    required = form.get("required", ())
    rows = (
        (f"`{field}`{'' if field in required else ', optional'}", _kind(one), one.get("description", ""))
        for field, one in form.get("properties", {}).items()
    )
    yield table(("field", "form", ""), rows)


def _kind(schema: dict[str, Any]) -> str:
    """Say what a value looks like."""
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    for how in ("anyOf", "oneOf", "allOf"):
        if how in schema:
            return " or ".join(dict.fromkeys(map(_kind, schema[how])))
    if "const" in schema or "enum" in schema:
        return " or ".join(f"`{json.dumps(one)}`" for one in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    values = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(values, dict):
        return f"object with values: {_kind(values)}"
    return str(schema.get("type", "anything"))


def _open_api() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        service = open_service(folder, new={"tags": "tags"})
        try:
            schema: dict[str, Any] = make_app(service).openapi()
        finally:
            service.close()
    return schema
