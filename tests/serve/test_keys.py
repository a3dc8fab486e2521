"""Idempotency keys: a request that is sent again counts once, from any client, at any time."""

from __future__ import annotations

import threading

import httpx
import pytest
from helpers.http import asking, is_problem, listening
from helpers.serving import serving

import labelrace
from labelrace.exceptions import ServiceError

ROW = {"id": "K-1", "subject": "invoice", "tags": ["billing"]}
KEY = {"Idempotency-Key": "import of May, part 1"}


def learn(client, row=ROW, **headers):
    return client.post("/v1/learn", json={"rows": [row]}, headers=KEY | headers)


def test_the_same_request_counts_once_also_after_a_start(tmp_path):
    answers = []
    for _ in range(2):
        with serving(tmp_path) as service, asking(service) as client:
            answers += [learn(client).json(), learn(client, **{"X-Labelrace-User": "Ann"}).json()]
            # The order of names in an object is no difference.
            answers.append(learn(client, dict(reversed(ROW.items()))).json())
            status = client.get("/v1/status").json()
            assert (status["rows"], status["journal_position"]) == (1, 1)
    assert answers == [{"learned": 1, "position": 1}] * 6


def test_another_request_with_the_key_is_refused(tmp_path):
    with serving(tmp_path) as service, asking(service) as client:
        learn(client)
        body = {"rows": [{"id": "K-1", "tags": ["billing"]}]}
        others = [
            learn(client, ROW | {"subject": "other"}),
            learn(client, ROW | {"tags": []}),
            client.post("/v1/feedback", json=body, headers=KEY),
            client.post("/v1/tags/retire", json={"tags": ["billing"]}, headers=KEY),
        ]
        for answer in others:
            problem = is_problem(answer, 422, "Idempotency-Key")
            assert problem["errors"][0]["field"] == "Idempotency-Key"
        assert client.get("/v1/status").json()["journal_position"] == 1
        assert client.get("/v1/rows/K-1").json()["tags"] == ["billing"]


def test_a_request_that_was_refused_may_be_mended(tmp_path):
    """What was not learned has no key."""
    with serving(tmp_path) as service, asking(service) as client:
        is_problem(learn(client, {"id": "K-1", "tags": 5}), 422)
        assert learn(client).json()["learned"] == 1
        preview = {"tags": ["billing"], "preview": True}
        again = {"Idempotency-Key": "another"}
        assert client.post("/v1/tags/retire", json=preview, headers=again).json()["changed"] == 1
        assert client.post("/v1/tags/retire", json={"tags": ["billing"]}, headers=again).json()["position"] == 2


def test_many_at_the_same_time_count_once(tmp_path):
    with serving(tmp_path) as service, listening(service) as port:
        answers = []

        def ask():
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                answers.extend(learn(client).json() for _ in range(5))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [{"learned": 1, "position": 1}] * 40
        assert service.status()["rows"] == 1


def test_the_client_counts_once_and_says_what_is_wrong(tmp_path):
    with (
        serving(tmp_path) as service,
        listening(service) as port,
        labelrace.Client(f"http://127.0.0.1:{port}") as client,
    ):
        rows = [{"id": str(number), "subject": f"row {number}", "tags": ["a"]} for number in range(600)]
        for _ in range(2):
            assert client.learn(rows, key="all")["learned"] == 600
        assert client.status()["rows"] == 600
        with pytest.raises(ServiceError, match="Idempotency-Key") as raised:
            client.learn(rows[:500] + rows[:1], key="all")
        assert raised.value.status == 422
        # Without a key every call counts: a row that is sent again with other tags is a correction.
        assert client.feedback([{"id": "0", "tags": ["b"]}])["position"] == 3
        assert client.feedback([{"id": "0", "tags": ["c"]}])["position"] == 4
        assert client.status()["corrections"] == 2
