"""The API by HTTP: that it says what the service says, and that whatever is wrong is a problem."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers.http import JSON, FakeService, asking, is_problem
from helpers.serving import TICKETS, serving, teach, without_tags

from labelrace.serve.answers import read_json
from labelrace.serve.problems import Problem


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Yield a client of a service that has learned 200 rows, for tests that change nothing of them."""
    with serving(tmp_path_factory.mktemp("journal")) as service:
        teach(service, TICKETS[:200], 50)
        with asking(service) as asked:
            asked.service = service
            yield asked


def post(client, path, body, **headers):
    return client.post(path, content=body, headers=JSON | headers)


# --- Rows -------------------------------------------------------------------------------------------------------------


def test_a_prediction_is_that_of_the_service(client):
    rows = [{name: cell for name, cell in row.items() if name != "id"} for row in without_tags(TICKETS[200:205])]
    answer = client.post("/v1/predict", json={"rows": rows}).json()
    assert answer["rows"] == client.post("/v1/predict", json={"rows": rows}).json()["rows"]
    assert answer["position"] == client.get("/v1/status").json()["position"]
    assert all(row.keys() == {"tags", "probabilities", "review"} for row in answer["rows"])
    explained = client.post("/v1/predict", json={"rows": rows[:1], "explain": True}).json()["rows"][0]
    assert explained.pop("explanation")
    assert explained["tags"] == answer["rows"][0]["tags"]
    # A row alone is multiplied in another order than with others.
    assert explained["probabilities"] == pytest.approx(answer["rows"][0]["probabilities"], abs=1e-5)


def test_a_row_waits_is_told_corrected_and_withdrawn(client):
    row = without_tags([TICKETS[300]])[0] | {"id": "a/b c%"}
    client.post("/v1/predict", json={"rows": [row]})
    path = "/v1/rows/a%2Fb%20c%25"
    assert client.get(path).json()["state"] == "waiting"
    assert client.get("/v1/rows", params={"state": "waiting"}).json()["rows"][0]["id"] == "a/b c%"
    for tags, learned in ((["login"], 1), (["billing", "login"], 1), (None, 0)):
        said = client.post(
            "/v1/feedback", json={"rows": [{"id": "a/b c%", "tags": tags}]}, headers={"X-Labelrace-User": "A%C3%A9"}
        )
        assert said.json()["learned"] == learned
        known = client.get(path).json()
        assert known["tags"] == tags
        assert known["state"] == ("waiting" if tags is None else "tagged")
    assert [said["tags"] for said in known["history"]] == [["login"], ["billing", "login"], None]
    assert known["history"][0]["who"] == "Aé"


def test_whoever_has_a_row_open_is_shown(client):
    client.post("/v1/predict", json={"rows": [{"id": "O-1", "subject": "invoice"}]})
    assert client.post("/v1/rows/O-1/open", json={"who": "Ann"}).json() == {"id": "O-1", "open_by": "Ann"}
    assert client.get("/v1/rows/O-1").json()["open_by"] == "Ann"
    # Who was there first stays.
    for said in ({"who": "Ben"}, {"who": "Ben", "open": False}):
        assert client.post("/v1/rows/O-1/open", json=said).json()["open_by"] == "Ann"
    assert client.post("/v1/rows/O-1/open", json={"who": "Ann", "open": False}).json()["open_by"] is None
    assert client.post("/v1/rows/O-1/open", json={"who": "Ben"}).json()["open_by"] == "Ben"
    is_problem(client.post("/v1/rows/O-1/open", json={"who": "x" * 101}), 422, "who")
    is_problem(client.post("/v1/rows/nobody/open", json={"who": "Ann"}), 404, "nobody")


def test_a_key_makes_a_request_count_once(client):
    body = json.dumps({"rows": [{"id": "K-1", "subject": "invoice", "tags": ["billing"]}]})
    first = post(client, "/v1/learn", body, **{"Idempotency-Key": "one key"})
    rows = client.get("/v1/status").json()["rows"]
    assert post(client, "/v1/learn", body, **{"Idempotency-Key": "one key"}).json() == first.json()
    assert client.get("/v1/status").json()["rows"] == rows
    other = json.dumps({"rows": [{"id": "K-2", "subject": "other", "tags": ["billing"]}]})
    is_problem(post(client, "/v1/learn", other, **{"Idempotency-Key": "one key"}), 422, "Idempotency-Key")
    is_problem(post(client, "/v1/learn", other, **{"Idempotency-Key": "x" * 201}), 422, "Idempotency-Key")
    is_problem(post(client, "/v1/learn", other, **{"Idempotency-Key": ""}), 422, "Idempotency-Key")


def test_a_wrong_row_is_named_and_nothing_of_its_request_is_learned(client):
    rows = client.get("/v1/status").json()["rows"]
    request = {"rows": [{"subject": "a", "tags": ["x"]}, {"subject": {"b": 1}, "tags": ["x"]}]}
    problem = is_problem(client.post("/v1/learn", json=request), 422)
    assert problem["errors"][0]["row"] == 1
    assert problem["errors"][0]["field"] == "subject"
    assert client.get("/v1/status").json()["rows"] == rows
    is_problem(client.post("/v1/feedback", json={"rows": [{"id": "nobody", "tags": []}]}), 404, "nobody")
    many = {"rows": [{"subject": "a"}] * (client.service.limits.max_rows + 1)}
    is_problem(client.post("/v1/predict", json=many), 413, "rows")


# --- Tags and the whole -----------------------------------------------------------------------------------------------


def test_tags_are_changed_and_previews_change_nothing(tmp_path):
    with serving(tmp_path) as service, asking(service) as client:
        teach(service, TICKETS[:60])
        names = [one["tag"] for one in client.get("/v1/tags").json()["tags"]]
        old, other = names[:2]
        assert client.get(f"/v1/tags/{old}").json()["tag"] == old
        preview = client.post("/v1/tags/rename", json={"names": {old: "a/new one"}, "preview": True}).json()
        assert preview["changed"] == 1
        assert old in {one["tag"] for one in client.get("/v1/tags").json()["tags"]}
        client.post("/v1/tags/rename", json={"names": {old: "a/new one"}}).raise_for_status()
        assert client.get("/v1/tags/a%2Fnew%20one").json()["rows"] == preview["rows"]
        is_problem(client.get(f"/v1/tags/{old}"), 404)
        client.post("/v1/tags/merge", json={"tags": ["a/new one", other], "into": other}).raise_for_status()
        described = {"tags": {other: {"synonyms": ["stove"], "description": "Hot"}}}
        client.post("/v1/tags/describe", json=described).raise_for_status()
        assert client.get(f"/v1/tags/{other}").json()["synonyms"] == ["stove"]
        client.post("/v1/tags/retire", json={"tags": [other]}).raise_for_status()
        is_problem(client.post("/v1/tags/rename", json={"names": {"nothing": "x"}}), 422)
        is_problem(client.post("/v1/tags/rename", json={"names": {old: 5}}), 422, "names")
        is_problem(client.post("/v1/tags/merge", json={"tags": [], "into": "x"}), 422, "tags")
        # A tag may have the name of a change.
        teach(service, [{"subject": "x", "tags": ["merge"]}])
        assert client.get("/v1/tags/merge").json()["tag"] == "merge"
        is_problem(client.post(f"/v1/tags/{other}", json={}), 405)


def test_the_journal_is_sent_whole(client):
    lines = client.get("/v1/export").text.splitlines()
    assert [json.loads(line)["position"] for line in lines[1:4]] == [1, 2, 3]


def test_metrics_are_those_of_prometheus(client):
    client.get("/v1/rows/secret-id")
    text = client.get("/metrics").text
    line = r"(# (HELP|TYPE) labelrace_\w+ .+|labelrace_\w+(\{.*\})? [0-9.e+-]+)"
    assert [one for one in text.splitlines() if not re.fullmatch(line, one)] == []
    assert f"labelrace_position {client.get('/v1/status').json()['position']}" in text
    assert 'labelrace_requests_total{method="GET",path="/v1/rows/{id}",status="404"}' in text
    assert 'labelrace_request_seconds_bucket{path="/v1/rows/{id}",le="+Inf"}' in text
    assert "secret-id" not in text
    for name in ("lag", "waiting", "snapshot_position", "queue_teach_rows", "ready"):
        assert f"\nlabelrace_{name} " in text


def test_predictions_do_not_wait_for_those_that_are_explained():
    explaining, go_on = threading.Event(), threading.Event()

    class Slow(FakeService):
        def predict(self, requests):
            if any(request.explain for request in requests):
                explaining.set()
                assert go_on.wait(10)
            return super().predict(requests)

    with asking(Slow()) as client, ThreadPoolExecutor(1) as pool:
        body = {"rows": [{"title": "Oven"}]}
        explained = pool.submit(client.post, "/v1/predict", json=body | {"explain": True})
        assert explaining.wait(10)
        assert client.post("/v1/predict", json=body).status_code == 200
        assert not explained.done()
        go_on.set()
        assert explained.result(10).status_code == 200


def test_health_says_why_a_service_is_not_ready():
    service = FakeService()
    with asking(service) as client:
        assert client.get("/health/live").json() == {"status": "live"}
        assert client.get("/health/ready").json() == {"status": "ready"}
        service.error = Problem(503, "Gone", "The disk is full.")
        response = client.get("/health/ready")
        is_problem(response, 503, "The disk is full.")
        assert response.headers["retry-after"]
        assert client.get("/health/live").status_code == 200


# --- Problems ---------------------------------------------------------------------------------------------------------

MALFORMED = {
    "nothing": b"",
    "half": b'{"rows": [',
    "two names": b'{"rows": [{"subject": "a", "subject": "b", "tags": []}]}',
    "infinite": b'{"rows": [{"n": 1e999, "tags": []}]}',
    "not a number": b'{"rows": [{"n": NaN, "tags": []}]}',
    "not UTF-8": b'{"rows": [{"subject": "\xff", "tags": []}]}',
    "half a pair": rb'{"rows": [{"subject": "\ud800", "tags": []}]}',
    "half a pair in a name": rb'{"rows": [{"\udfff": "a", "tags": []}]}',
    "deep": b'{"rows": ' + b"[" * 100_000,
    "deep objects": b'{"rows": [{"subject": ' + b'{"a": ' * 50_000,
    "a huge number": b'{"rows": [{"n": 1' + b"0" * 5000 + b"}]}",
    "UTF-16": '{"rows": []}'.encode("utf-16"),
    "two values": b'{"rows": []} {}',
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("path", ["/v1/learn", "/v1/tags/rename", "/predict"])
def test_malformed_json_is_told(client, path, body):
    is_problem(post(client, path, body), 400, "JSON")


WRONG = {
    "a list": b"[]",
    "a text": b'"rows"',
    "null": b"null",
    "no rows": b"{}",
    "rows that are none": b'{"rows": {"a": 1}}',
    "rows that are texts": b'{"rows": ["a"]}',
    "no row": b'{"rows": []}',
    "another field": b'{"rows": [], "explain": 1, "x": 2}',
    "a large number": b'{"rows": [{"n": 1' + b"0" * 200 + b', "tags": []}]}',
    "an id of 20 digits": b'{"rows": [{"id": 12345678901234567890, "tags": []}]}',
    "nested tags": b'{"rows": [{"subject": "x", "tags": [["a"]]}]}',
    "half a pair in a field": rb'{"rows": [{"id": "a", "tags": [5]}]}',
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("path", ["/v1/learn", "/v1/feedback"])
def test_wrong_values_are_told(client, path, body):
    assert is_problem(post(client, path, body), 422)["errors"]


def test_what_is_not_there_is_a_problem(client):
    is_problem(client.get("/v1/nothing"), 404)
    is_problem(client.get("/v1/rows/"), 404)
    is_problem(client.get("/v1/rows/%00"), 404)
    is_problem(client.get("/v1/rows/..%2f..%2fetc%2fpasswd"), 404)
    response = client.delete("/v1/learn", headers=JSON)
    is_problem(response, 405)
    assert response.headers["allow"] == "POST"
    is_problem(client.get("/v1/rows", params={"limit": 0}), 422, "limit")
    is_problem(client.get("/v1/rows", params={"order": "best"}), 422, "order")
    is_problem(client.get("/v1/rows", params={"after": "nonsense"}), 422)


def test_a_failure_is_told_without_what_it_says():
    with asking(FakeService(error=RuntimeError("row content"))) as client:
        for response in (client.post("/v1/predict", json={"rows": [{"a": "b"}]}), client.get("/v1/status")):
            is_problem(response, 500)
            assert "row content" not in response.text
            assert response.headers["x-content-type-options"] == "nosniff"


def test_a_database_that_is_gone_is_told():
    with asking(FakeService(error=Problem(503, "Gone", "The database is gone.", retry_after=2.5))) as client:
        response = client.post("/v1/learn", json={"rows": [{"a": "b", "tags": []}]})
        is_problem(response, 503, "database")
        assert response.headers["retry-after"] == "3"


def test_numbers_are_read_as_other_languages_read_them():
    assert read_json(b"[1, 12345678901234567890, 1.5, -0.0, true]") == [1, 1.2345678901234567e19, 1.5, 0.0, True]


# --- The page of the API ----------------------------------------------------------------------------------------------


def test_the_page_of_the_api_needs_nothing_from_elsewhere(client):
    response = client.get("/docs")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    page = response.text
    assert not re.search(r"https?://|<script|@import|url\(", page)
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in page
    for name in re.findall(r'href="#(\w+)"', page):
        assert f'id="{name}"' in page
