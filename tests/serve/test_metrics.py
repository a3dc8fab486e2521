"""Metrics and logs: what is counted is what happened, in forms that others read, without anything of the rows."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
from collections import Counter
from datetime import UTC, datetime

import pytest
from helpers.http import FakeService, asking
from helpers.serving import TICKETS, feedback, serving, teach
from hypothesis import given
from hypothesis import strategies as st

from labelrace.serve import logs
from labelrace.serve.metrics import Requests, as_text

LABEL = r'[a-z_]+="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"([a-z_]+)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")


def samples(text):
    """Read the text form of metrics, strictly: every sample after its help and type, each once, the last line ended."""
    assert text.endswith("\n")
    found, kinds, helped = {}, {}, set()
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in helped
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("counter", "gauge", "histogram")
            kinds[name] = kind
        else:
            name, labels, *_, value = SAMPLE.fullmatch(line).groups()
            base = re.sub("_(bucket|sum|count)$", "", name) if name not in kinds else name
            assert base in kinds
            assert base in helped
            assert (kinds[base] == "counter") == name.endswith("_total")
            assert (name, labels) not in found
            found[name, labels] = float(value)
    return found


SECONDS = st.floats(0, 100)
PATHS = st.sampled_from(["/v1/learn", "/v1/rows/{id}", 'a"b\\c\nd'])


@given(st.lists(st.tuples(st.sampled_from(["GET", "POST"]), PATHS, st.sampled_from([200, 404]), SECONDS), max_size=40))
def test_requests_are_counted(asked):
    requests = Requests()
    for one in asked:
        requests.add(*one)
    found = samples(as_text(requests, {}, {}))
    counts = Counter((method, path, status) for method, path, status, _ in asked)
    escaped = {path: path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for _, path, _, _ in asked}
    for (method, path, status), count in counts.items():
        labels = f'method="{method}",path="{escaped[path]}",status="{status}"'
        assert found["labelrace_requests_total", labels] == count
    for path, shown in escaped.items():
        seconds = [one[3] for one in asked if one[1] == path]
        assert found["labelrace_request_seconds_count", f'path="{shown}"'] == len(seconds)
        assert found["labelrace_request_seconds_sum", f'path="{shown}"'] == pytest.approx(sum(seconds), abs=1e-5)
        buckets = {
            float(re.search('le="(.*)"', labels)[1].replace("+Inf", "inf")): value
            for (name, labels), value in found.items()
            if name.endswith("_bucket") and f'path="{shown}"' in labels
        }
        assert math.inf in buckets
        assert buckets == {bound: sum(one <= bound for one in seconds) for bound in buckets}


def test_the_metrics_are_those_of_the_service(tmp_path):
    with serving(tmp_path) as service, asking(service) as client:
        teach(service, TICKETS[:40], 10)
        feedback(service, {"id": TICKETS[0]["id"], "tags": ["corrected"]})
        client.post("/v1/predict", json={"rows": [{"id": "W-1", "subject": "x"}, {"id": "W-2", "subject": "y"}]})
        for path in ("/v1/rows/W-1", "/v1/rows/nobody", "/nothing", "/v1/tags/nothing"):
            client.get(path)
        client.request("BREW", "/v1/status")
        found = samples(client.get("/metrics").text)
        again = samples(client.get("/metrics").text)
    gauges = {name: value for (name, labels), value in found.items() if labels is None}
    tags = {tag for row in TICKETS[:40] for tag in row["tags"]} | {"corrected"}
    # A correction is learned, too.
    assert gauges["labelrace_rows"] == 41
    assert gauges["labelrace_corrections"] == 1
    assert gauges["labelrace_position"] == gauges["labelrace_journal_position"] == 5
    assert gauges["labelrace_lag"] == gauges["labelrace_listeners"] == gauges["labelrace_snapshot_position"] == 0
    assert gauges["labelrace_waiting"] == 2
    assert gauges["labelrace_ready"] == 1
    assert len(tags) - 3 <= gauges["labelrace_tags"] <= len(tags)
    counts = {labels: value for (name, labels), value in found.items() if name == "labelrace_requests_total"}
    assert counts == {
        'method="POST",path="/v1/predict",status="200"': 1,
        'method="GET",path="/v1/rows/{id}",status="200"': 1,
        'method="GET",path="/v1/rows/{id}",status="404"': 1,
        'method="GET",path="/v1/tags/{tag}",status="404"': 1,
        'method="GET",path="unmatched",status="404"': 1,
        'method="other",path="/v1/status",status="405"': 1,
    }
    assert again["labelrace_requests_total", 'method="GET",path="/metrics",status="200"'] == 1


def test_no_request_makes_a_new_series():
    with asking(FakeService()) as client:
        for number in range(50):
            client.request(f"M{number}", f"/path{number}", headers={"Host": f"h{number}"})
            client.get(f"/v1/rows/{number}")
        found = samples(client.get("/metrics").text)
    assert len(found) < 70


def test_a_log_is_lines_of_json():
    written = []
    log = logs.RequestLog(written.append)
    assert log.add(0.0, "GET", "/v1/rows/{id}", 200, 0.00123, 'a"b\n\x1b[31m\u2028')
    assert not log.add(1.5, "POST", "/v1/learn", 503, 2.0, None)
    log.flush()
    log.flush()
    [text] = written
    first, second = map(json.loads, text.splitlines())
    assert text.isascii()
    assert first == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "method": "GET",
        "path": "/v1/rows/{id}",
        "status": 200,
        "ms": 1.23,
        "user": 'a"b\n\x1b[31m\u2028',
    }
    assert second.keys() == {"time", "method", "path", "status", "ms"}
    assert log.add(2.0, "GET", "/", 200, 0.0, None)


def test_an_error_is_logged_by_its_kind_and_place():
    """Its message may quote a row, and so may the message of what caused it."""
    try:
        try:
            raise ValueError("secret")
        except ValueError as error:
            raise KeyError("secret") from error
    except KeyError:
        record = logging.LogRecord("labelrace", logging.ERROR, "x", 1, "It failed: %s", ("here",), sys.exc_info())
    text = logs.Formatter().format(record)
    line = json.loads(text)
    assert "\n" not in text
    assert "secret" not in text
    assert (line["level"], line["message"], line["error"]) == ("error", "It failed: here", "KeyError")
    assert re.search(r"test_metrics\.py:\d+ test_an_error", line["where"][-1])
    assert abs(datetime.fromisoformat(line["time"]) - datetime.now(UTC)).total_seconds() < 60
