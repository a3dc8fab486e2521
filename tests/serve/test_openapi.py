"""The API against its own description: requests drawn from the OpenAPI, right and wrong, are answered as it says."""

from __future__ import annotations

import os
import re
from contextlib import suppress

import httpx
import pytest
import schemathesis
from helpers.http import FakeService, asking, is_problem, listening, until
from helpers.models import ALL_MODELS
from helpers.serving import TICKETS, serving, teach
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from labelrace.serve.export import fold_export

N_EXAMPLES = int(os.environ.get("LABELRACE_FUZZ", "40" if ALL_MODELS else "15"))
CONFIG = '<View><Choices name="topic" toName="text"><Choice value="0"/></Choices></View>'
# What is drawn most often, so that it is known, too.
COMMON = [{"id": name, "subject": name, "tags": [name]} for name in ("0", "1", "a", "00")]
INSIDE = re.compile(r'Traceback|\.py\b|site-packages|File \\?"|sqlalchemy|pydantic|0x[0-9a-f]{8}', re.IGNORECASE)
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("journal")) as service:
        teach(service, COMMON + TICKETS[:60], 16)
        yield service


@pytest.fixture(scope="module")
def operations(service):
    """Yield what the OpenAPI describes, but for the stream of events, which has no end."""
    with listening(service) as port:
        schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
        found = [operation.ok() for operation in schema.exclude(path="/v1/events").get_all_operations()]
        assert len(found) > 20
        yield found


@pytest.mark.parametrize("mode", GenerationMode, ids=lambda mode: mode.value)
def test_requests_are_answered_as_described(service, operations, mode):
    statuses = dict[int, int]()
    for operation in operations:
        # There is nothing wrong to be asked of a path without parameters.
        with suppress(Unsatisfiable):
            ask_much(operation, mode, statuses)
        assert service.is_ready() is None
    assert service.lag == 0
    assert min(statuses.get(422, 0), statuses.get(200, 0)) > (N_EXAMPLES if mode is GenerationMode.POSITIVE else 0)


def ask_much(operation, mode, statuses):
    """Send requests of one kind, and check each answer."""

    @given(operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=N_EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case):
        if mode is GenerationMode.POSITIVE and operation.path in ("/setup", "/predict"):
            case.body |= {"schema": CONFIG} if operation.path == "/setup" else {"label_config": CONFIG}
        response = case.call(timeout=30)
        case.validate_response(response, checks=CHECKS)
        statuses[response.status_code] = statuses.get(response.status_code, 0) + 1
        if response.status_code >= 400:
            assert response.headers["content-type"] == ["application/problem+json"]
            problem = response.json()
            assert problem["status"] == response.status_code
            assert len(problem["detail"]) < 1000
            assert not INSIDE.search(problem["detail"]), problem

    ask()


def test_what_was_taught_is_learned_again_from_the_journal(service, operations):
    """Whatever was drawn, the journal is the model: nothing in it cannot be folded."""
    again = fold_export(service.export())
    assert again.position == service.folded.position
    assert again.tagger.tags_ == service.folded.tagger.tags_


SECRET = "quetzalcoatl"
ROW = {"id": SECRET, "subject": SECRET, "tags": [SECRET]}
ASKED = [
    ("POST", "/v1/learn", {"rows": [ROW]}),
    ("POST", "/v1/predict", {"rows": [{"subject": SECRET, "id": SECRET}], "explain": True}),
    ("POST", "/v1/predict", {"rows": [{"subject": {SECRET: 1}}]}),
    ("POST", "/v1/feedback", {"rows": [{"id": SECRET, "tags": [SECRET, "b"]}]}),
    ("POST", "/v1/feedback", {"rows": [{"id": "x" + SECRET, "tags": [SECRET]}]}),
    ("GET", f"/v1/rows/{SECRET}", None),
    ("GET", f"/v1/rows?search={SECRET}&tag={SECRET}", None),
    ("GET", f"/v1/tags/{SECRET}", None),
    ("POST", f"/v1/rows/{SECRET}/open", {"who": SECRET}),
    ("POST", "/v1/tags/describe", {"tags": {SECRET: {"description": SECRET}}}),
    ("POST", "/v1/tags/rename", {"names": {SECRET: SECRET + "s"}}),
    ("POST", "/setup", {"schema": f"<{SECRET}"}),
    ("POST", "/predict", {"tasks": [{"id": 1, "data": {"text": SECRET}}], "label_config": CONFIG}),
    ("POST", f"/{SECRET}", {}),
]


@pytest.mark.parametrize("fails", [False, True])
def test_logs_have_nothing_of_the_rows(tmp_path, capfd, fails):
    """Not even when the service fails with an error that quotes them."""
    with (
        serving(tmp_path) as real,
        listening(FakeService(error=RuntimeError(SECRET)) if fails else real) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        for method, path, body in ASKED:
            answer = client.request(method, path, json=body)
            assert "Traceback" not in answer.text
            if answer.status_code == 500:
                assert SECRET not in answer.text
    told = capfd.readouterr().err
    assert told.count('"path"') >= len(ASKED)
    assert ("RuntimeError" in told) == fails
    assert SECRET not in told


def test_a_journal_that_cannot_be_followed_is_told_without_rows(tmp_path, monkeypatch):
    """A client that asks whether the service is ready needs no token."""
    with serving(tmp_path) as service, asking(service) as client:

        def fail():
            raise RuntimeError(SECRET)

        monkeypatch.setattr(service, "_step", fail)
        until(lambda: service.is_ready() is not None)
        assert SECRET not in is_problem(client.get("/health/ready"), 503)["detail"]
