"""The page of the service's HTTP API, from its OpenAPI."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

from fastapi.testclient import TestClient
from markdown_table import table

from labelrace.serve.api import make_app
from labelrace.serve.service import open_service

_OK = "200"
# Requests that are shown with an answer, in this order: their bodies. Rows are learned before.
_TAUGHT = [
    {"title": title, "tags": tags}
    for title, tags in (("The oven is too hot", ["oven", "heat"]), ("The toaster is broken", ["toaster"]))
] * 20
_SHOWN: dict[str, dict[str, Any]] = {
    "/v1/predict": {"rows": [{"id": "T-1", "title": "A hot oven"}]},
    "/v1/feedback": {"rows": [{"id": "T-1", "tags": ["oven"]}]},
    "/v1/learn": {"rows": [{"id": "T-2", "title": "The fridge is loud", "tags": ["fridge", "noise"]}]},
}
_ADDRESS = "http://127.0.0.1:8080"


def http_api() -> str:
    """Return the page."""
    schema, shown = _asked()
    requests = [
        (f"{method.upper()} {path}", one, shown.get(path, ""))
        for path, methods in schema["paths"].items()
        for method, one in methods.items()
    ]
    common = _common([one for _, one, _ in requests])
    about = schema["info"].get("description", "")
    head = ["<!-- made by docs/_ext/http_page.py -->\n", "# The HTTP API\n", f"{about}\n"]
    errors = table(("error", ""), ((f"`{status}`", said) for status, said in sorted(common)))
    told = "## Errors\n\nAny request may be answered by these, each with a body of the form"
    head += [f"{told} {_link('ProblemDetails')}:\n", errors]
    parts = [part for title, one, example in requests for part in _request(title, one, example, common)]
    forms = [part for name, form in sorted(schema["components"]["schemas"].items()) for part in _form(name, form)]
    return "\n".join([*head, *parts, "## Forms\n", *forms])


def _common(requests: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return the errors that most requests have, which are told once."""
    counted = Counter((status, one["description"]) for each in requests for status, one in each["responses"].items())
    return {said for said, count in counted.items() if said[0] >= "400" and 2 * count > len(requests)}


def _request(title: str, one: dict[str, Any], example: str, common: set[tuple[str, str]]) -> Iterator[str]:
    yield f"## {title}\n\n{one.get('description') or one.get('summary', '')}\n"
    parameters = one.get("parameters", ())
    rows = ((f"`{each['name']}`", each["in"], each.get("description", "")) for each in parameters)
    yield table(("parameter", "in", ""), rows)
    if "requestBody" in one:
        yield f"Body: {_content(one['requestBody'])}\n"
    if _OK in one["responses"]:
        yield f"Answer: {_content(one['responses'][_OK])}\n"
    others = {status: each["description"] for status, each in one["responses"].items() if status != _OK}
    rows = ((f"`{status}`", said) for status, said in others.items() if (status, said) not in common)
    yield table(("other answers", ""), rows)
    yield example


def _content(said: dict[str, Any]) -> str:
    """Say what is in a body: a form, or a kind of file."""
    kinds = said.get("content", {})
    forms = [_kind(one["schema"]) for name, one in kinds.items() if name == "application/json" and one.get("schema")]
    return forms[0] if forms else " or ".join(f"`{name}`" for name in kinds) or "empty"


def _form(name: str, form: dict[str, Any]) -> Iterator[str]:
    yield f"(form-{name.lower()})=\n### {name}\n\n{form.get('description', '')}\n"
    required = form.get("required", ())
    rows = (
        (f"`{field}`{'' if field in required else ', optional'}", _kind(one), one.get("description", ""))
        for field, one in form.get("properties", {}).items()
    )
    yield table(("field", "form", ""), rows)


def _kind(schema: dict[str, Any]) -> str:
    """Say what a value looks like."""
    if "$ref" in schema:
        return _link(schema["$ref"].rpartition("/")[2])
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


def _link(form: str) -> str:
    return f"[`{form}`](#form-{form.lower()})"


def _asked() -> tuple[dict[str, Any], dict[str, str]]:
    """Return what a service says of its requests, and some of them with its answers."""
    with tempfile.TemporaryDirectory() as folder:
        service = open_service(folder, new={"tags": "tags", "text": "title", "skip_known": False})
        app = make_app(service)
        client, shown = TestClient(app, base_url=_ADDRESS), dict[str, str]()
        try:
            client.post("/v1/learn", json={"rows": _TAUGHT}).raise_for_status()
            for path, body in _SHOWN.items():
                answer = _rounded(client.post(path, json=body).raise_for_status().json())
                lines = (
                    f"curl -s {_ADDRESS}{path} -H 'Content-Type: application/json' \\",
                    f"    -d '{json.dumps(body)}'",
                )
                shown[path] = "```sh\n{}\n{}\n```\n\n```json\n{}\n```\n".format(*lines, json.dumps(answer, indent=2))
            schema: dict[str, Any] = app.openapi()
        finally:
            client.close()
            app.state.events.close()
            service.close()
    return schema, shown


def _rounded(value: Any) -> Any:
    """Return an answer with three digits of its numbers, which are then the same on every machine."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, 3) if isinstance(value, float) else value
