"""Label Studio's doors: what it sends, as its documentation describes it, and what it reads of the answers."""

from __future__ import annotations

import copy
import time

import pytest
from helpers.http import JSON, TEACH, TOKENS, FakeService, asking, is_problem
from helpers.serving import serving

from labelrace.serve import maintenance
from labelrace.serve.label_studio import controls

CHOICES = """
<View>
  <Text name="text" value="$text"/>
  <Choices name="topic" toName="text" choice="multiple" showInLine="true">
    <Choice value="oven"/><Choice value="invoice"/><Choice value="delivery" alias="shipping"/>
  </Choices>
</View><!-- {"data": {"text": "An example"}} -->
"""
SINGLE = CHOICES.replace('choice="multiple"', 'choice="single-radio"')
TAXONOMY = """
<View>
  <Text name="text" value="$text"/>
  <Taxonomy name="kind" toName="text">
    <Choice value="Online"><Choice value="Free"/><Choice value="Paid"/></Choice>
    <Choice value="Offline"/>
  </Taxonomy>
</View>
"""
TWO = TAXONOMY.replace(
    "</View>", '<Choices name="mood" toName="text"><Choice value="glad"/><Choice value="angry"/></Choices></View>'
)
NO_TAGS = '<View><Labels name="l" toName="t"><Label value="Person"/></Labels><Text name="t" value="$t"/></View>'

TEXTS = {
    "oven": "The oven gets too hot, and its door is loose",
    "invoice": "My invoice has a wrong amount and a wrong address",
    "shipping": "The parcel was not delivered, where is it",
}


def task(number, text="An oven", **more):
    """Return a task as Label Studio sends it."""
    return {
        "id": number,
        "data": {"text": text},
        "meta": {},
        "created_at": "2024-05-06T13:51:02.590839Z",
        "updated_at": "2024-05-06T13:51:02.590873Z",
        "is_labeled": False,
        "overlap": 1,
        "inner_id": number,
        "total_annotations": 0,
        "cancelled_annotations": 0,
        "project": 2,
        "annotations": [],
        "predictions": [],
        "drafts": [],
        **more,
    }


def to_predict(tasks, config=CHOICES):
    """Return what is sent to ``/predict``."""
    params = {"login": None, "password": None, "context": None}
    return {"tasks": tasks, "model_version": "", "project": "2.1715003862", "label_config": config, "params": params}


def chosen(*tags, control="topic", kind="choices"):
    """Return a result of an annotation."""
    return {
        "value": {kind: list(tags)},
        "id": "WArqkkifYE",
        "from_name": control,
        "to_name": "text",
        "type": kind,
        "origin": "manual",
    }


def annotation(number, of_task, *results, **more):
    return {
        "id": number,
        "result": list(results),
        "task": of_task,
        "completed_by": 1,
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2024-05-06T13:52:48.536303Z",
        "updated_at": f"2024-05-06T13:52:48.{number:06}Z",
        "lead_time": 37.13,
        "prediction": {},
        "result_count": 0,
        **more,
    }


def event(action, config=CHOICES, **more):
    """Return what is sent to ``/webhook``."""
    project = {"id": 2, "title": "Mail", "label_config": config, "token": "9105a1d897e52286", "organization": 1}
    return {"action": action, "project": project, **more}


def created(number, of_task, *results, text=None, **more):
    told = {} if text is None else {"task": task(of_task, text)}
    return event("ANNOTATION_CREATED", annotation=annotation(number, of_task, *results, **more), **told)


@pytest.fixture
def studio(tmp_path):
    """Yield a client of a service that has learned some texts from Label Studio."""
    with serving(tmp_path) as service, asking(service) as client:
        texts = [f"{text} {number}" for number in range(10) for text in TEXTS.values()]
        told = [annotation(number, number, chosen(list(TEXTS)[number % 3])) for number in range(30)]
        tasks = [task(number, text) for number, text in enumerate(texts)]
        answer = client.post("/webhook", json=event("ANNOTATIONS_CREATED", annotation=told, task=tasks))
        assert answer.json() == {"status": "ok", "learned": 30, "withdrawn": 0}
        yield client


def tags_of(client, number):
    return client.get(f"/v1/rows/ls-{number}").json()["tags"]


# --- Attaching --------------------------------------------------------------------------------------------------------


def test_attaching(studio):
    assert studio.get("/health").json() == {"status": "UP", "model_class": "labelrace"}
    sent = {"project": "2.1715003862", "schema": CHOICES, "hostname": "http://localhost:8080", "access_token": "c1b81"}
    version = studio.post("/setup", json=sent | {"extra_params": None}).json()["model_version"]
    assert version == "labelrace at 30"
    for answer in (studio.get("/versions"), studio.post("/versions", json={"project": "2.1715003862"})):
        assert answer.json() == {"versions": [version]}


@pytest.mark.parametrize("config", [NO_TAGS, "<View></View>", "<View><Choices/></View>", "", "no XML", CHOICES[:-60]])
def test_a_project_without_tags_is_told_when_it_is_attached(studio, config):
    is_problem(studio.post("/setup", json={"project": "2.1", "schema": config}), 422, "label_config")
    is_problem(studio.post("/predict", json=to_predict([task(1)], config)), 422, "label_config")
    if config:
        sent = created(99, 99, chosen("oven"), text="x") | {"project": {"label_config": config}}
        is_problem(studio.post("/webhook", json=sent), 422)
    assert studio.get("/v1/status").json()["rows"] == 30


def test_a_token_is_the_password_of_basic_authentication():
    service = FakeService()
    with asking(service, TOKENS) as client:
        assert client.get("/health").status_code == 200
        is_problem(client.post("/webhook", json=created(1, 1, chosen("oven"), text="x")), 401)
        answer = client.post("/webhook", json=created(1, 1, chosen("oven"), text="x"), auth=("labelrace", TEACH))
        assert answer.json()["learned"] == 1
        assert service.calls[-1][0].who == "Theo"


# --- Predicting -------------------------------------------------------------------------------------------------------


def test_predictions_are_those_of_the_service(studio):
    tasks = [task(100 + number, text) for number, text in enumerate(TEXTS.values())]
    answer = studio.post("/predict", json=to_predict(tasks)).json()
    same = {"rows": [{"text": text} for text in TEXTS.values()]}
    expected = studio.post("/v1/predict", json=same).json()["rows"]
    assert answer["model_version"] == "labelrace at 30"
    assert len(answer["results"]) == 3
    for found, row in zip(answer["results"], expected, strict=True):
        assert found["model_version"] == answer["model_version"]
        [result] = found["result"]
        assert (result["from_name"], result["to_name"], result["type"]) == ("topic", "text", "choices")
        # Choices are told by what Label Studio calls them: their alias, if they have one.
        assert set(result["value"]["choices"]) == set(row["tags"])
        assert found["score"] == pytest.approx(min(row["probabilities"][tag] for tag in row["tags"]), abs=1e-5)
    # Rows wait for what people say.
    assert studio.get("/v1/rows/ls-100").json()["state"] == "waiting"


def test_a_single_choice_is_the_most_likely_one():
    class Sure(FakeService):
        def predict(self, requests):
            row = {"tags": ["invoice", "oven"], "probabilities": {"oven": 0.9, "invoice": 0.8}, "review": False}
            return [{"rows": [row], "position": 1} for _ in requests]

    with asking(Sure()) as client:
        for config, choices in ((CHOICES, ["oven", "invoice"]), (SINGLE, ["oven"])):
            [found] = client.post("/predict", json=to_predict([task(100)], config)).json()["results"]
            assert found["result"][0]["value"]["choices"] == choices
            assert found["score"] == 0.8


def test_a_taxonomy_has_paths(tmp_path):
    with serving(tmp_path) as service, asking(service) as client:
        for number in range(30):
            path, word = (["Online", "Free"], "download") if number % 2 else (["Offline"], "shop")
            result = chosen(path, control="kind", kind="taxonomy")
            sent = created(number, number, result, chosen("glad", control="mood"), text=f"{word} {number}")
            client.post("/webhook", json=sent | {"project": {"id": 2, "label_config": TWO}}).raise_for_status()
        assert {one["tag"] for one in client.get("/v1/tags").json()["tags"]} == {"Online / Free", "Offline", "glad"}
        answer = client.post("/predict", json=to_predict([task(1, "download")], TWO)).json()["results"][0]
        found = {result["from_name"]: result for result in answer["result"]}
        assert found["kind"]["type"] == "taxonomy"
        assert found["kind"]["value"] == {"taxonomy": [["Online", "Free"]]}
        assert found["mood"]["value"] == {"choices": ["glad"]}
        # A project with other controls gets none of these.
        assert (
            client.post("/predict", json=to_predict([task(1, "download")], CHOICES)).json()["results"][0]["result"]
            == []
        )


def test_before_anything_is_learned_nothing_is_predicted(tmp_path):
    with serving(tmp_path) as service, asking(service) as client:
        answer = client.post("/predict", json=to_predict([task(1), task(2)])).json()
        assert [found["result"] for found in answer["results"]] == [[], []]
        assert answer["model_version"] == "labelrace at 0"
        assert client.post("/predict", json=to_predict([])).json()["results"] == []


def test_tasks_of_any_kind(studio):
    nested = task(7) | {"data": {"text": "oven", "meta": {"a": 1}, "urls": [{"u": 1}], "n": 5, "nothing": None}}
    uploaded = task(8) | {"data": {"image": "/data/upload/1/a.png", "id": "own", "tags": ["not", "these"]}}
    answer = studio.post("/predict", json=to_predict([nested, uploaded, {"data": {"text": "no number"}}]))
    assert len(answer.json()["results"]) == 3
    assert studio.get("/v1/rows/ls-7").json()["cells"] == {"text": "oven", "n": 5, "nothing": None}
    assert studio.get("/v1/rows/ls-8").json()["cells"] == {"image": "/data/upload/1/a.png"}
    is_problem(studio.post("/predict", json=to_predict([{"id": 1}])), 422, "data")
    is_problem(studio.post("/predict", json=to_predict("tasks")), 422, "tasks")
    is_problem(studio.post("/predict", json=to_predict([task(n) for n in range(1001)])), 413, "1,000")


# --- What people say --------------------------------------------------------------------------------------------------


def test_annotations_are_created_updated_and_deleted(studio):
    studio.post("/predict", json=to_predict([task(100, TEXTS["oven"])])).raise_for_status()
    # Without the task: it was predicted before.
    assert studio.post("/webhook", json=created(500, 100, chosen("oven"))).json()["learned"] == 1
    assert tags_of(studio, 100) == ["oven"]
    updated = event(
        "ANNOTATION_UPDATED",
        annotation=annotation(500, 100, chosen("oven", "invoice"), updated_at="2024-05-06T14:00:00Z"),
        task=task(100, TEXTS["oven"]),
    )
    assert studio.post("/webhook", json=updated).json()["learned"] == 1
    assert tags_of(studio, 100) == ["oven", "invoice"]
    deleted = event("ANNOTATIONS_DELETED", annotations=[{"id": 500}])
    assert studio.post("/webhook", json=deleted).json() == {"status": "ok", "learned": 0, "withdrawn": 1}
    assert tags_of(studio, 100) is None
    history = studio.get("/v1/rows/ls-100").json()["history"]
    assert [said["tags"] for said in history] == [["oven"], ["oven", "invoice"], None]
    assert {said["who"] for said in history} == {"Label Studio"}


def test_an_annotation_is_deleted_also_after_a_restart_and_compaction(tmp_path):
    with serving(tmp_path) as service, asking(service) as client:
        for number, tag in ((500, "oven"), (5, "invoice")):
            client.post("/webhook", json=created(number, number, chosen(tag), text=TEXTS[tag])).raise_for_status()
        maintenance.compact(service.database)
        client.post("/webhook", json=created(600, 600, chosen("oven"), text=TEXTS["oven"])).raise_for_status()
        assert maintenance.compact(service.database).position == 2
    with serving(tmp_path) as service, asking(service) as client:
        deleted = event("ANNOTATIONS_DELETED", annotations=[{"id": 5}])
        assert client.post("/webhook", json=deleted).json()["withdrawn"] == 1
        assert [tags_of(client, number) for number in (500, 5)] == [["oven"], None]


def test_an_event_that_is_sent_again_counts_once(studio):
    sent = created(500, 100, chosen("oven"), text="An oven")
    before = studio.get("/v1/status").json()
    answers = [studio.post("/webhook", json=sent).json() for _ in range(3)]
    after = studio.get("/v1/status").json()
    assert answers == [{"status": "ok", "learned": 1, "withdrawn": 0}] * 3
    assert (after["rows"], after["journal_position"]) == (before["rows"] + 1, before["journal_position"] + 1)


def test_several_annotators(studio):
    """The last one who says something of a task is right."""
    for number, who, tag in ((500, 1, "oven"), (501, 2, "invoice")):
        sent = created(number, 100, chosen(tag), text=TEXTS["oven"], completed_by=who)
        assert studio.post("/webhook", json=sent).json()["learned"] == 1
    assert tags_of(studio, 100) == ["invoice"]
    assert [said["tags"] for said in studio.get("/v1/rows/ls-100").json()["history"]] == [["oven"], ["invoice"]]


def test_several_annotations_at_once(studio):
    told = [annotation(500 + number, 100 + number, chosen("oven")) for number in range(3)]
    tasks = [task(100 + number, f"An oven {number}") for number in range(3)]
    assert (
        studio.post("/webhook", json=event("ANNOTATIONS_CREATED", annotation=told, task=tasks)).json()["learned"] == 3
    )
    assert [tags_of(studio, 100 + number) for number in range(3)] == [["oven"]] * 3
    deleted = event("ANNOTATIONS_DELETED", annotations=[{"id": 500}, {"id": 502}, {"id": 999}])
    assert studio.post("/webhook", json=deleted).json()["withdrawn"] == 2
    assert [tags_of(studio, 100 + number) for number in range(3)] == [None, ["oven"], None]


def test_more_annotations_at_once_than_may_wait():
    """They are learned one part after the other, not refused for ever."""
    told = [annotation(number, number, chosen("oven")) for number in range(3000)]
    tasks = [task(number) for number in range(3000)]
    with asking(FakeService(), max_waiting=500) as client:
        answer = client.post("/webhook", json=event("ANNOTATIONS_CREATED", annotation=told, task=tasks))
        assert answer.json()["learned"] == 3000


def test_of_several_annotations_the_right_ones_are_learned(studio):
    wrong = annotation(501, 101, chosen("x" * 201))
    told = [annotation(500, 100, chosen("oven")), wrong, annotation(502, 102, chosen("oven"))]
    sent = event("ANNOTATIONS_CREATED", annotation=told, task=[task(100), task(101), task(102)])
    is_problem(studio.post("/webhook", json=sent), 422, "200 characters")
    assert [tags_of(studio, number) for number in (100, 102)] == [["oven"], ["oven"]]
    # They are known by their numbers.
    deleted = event("ANNOTATIONS_DELETED", annotations=[{"id": 500}, {"id": 502}])
    assert studio.post("/webhook", json=deleted).json()["withdrawn"] == 2


def test_skipped_tasks_drafts_and_empty_annotations(studio):
    rows = studio.get("/v1/status").json()["rows"]
    skipped = created(500, 100, chosen("oven"), text="x", was_cancelled=True)
    assert studio.post("/webhook", json=skipped).json() == {"status": "ignored", "learned": 0, "withdrawn": 0}
    assert studio.get("/v1/rows/ls-100").status_code == 404
    draft = task(101, "oven", drafts=[{"id": 9, "result": [chosen("oven")]}])
    studio.post("/predict", json=to_predict([draft])).raise_for_status()
    assert studio.get("/v1/rows/ls-101").json()["state"] == "waiting"
    assert studio.get("/v1/status").json()["rows"] == rows
    # Submitted without a choice: no tag applies.
    assert studio.post("/webhook", json=created(502, 102, text="Something else")).json()["learned"] == 1
    assert tags_of(studio, 102) == []


def test_results_of_other_controls_are_no_tags(studio):
    span = {"value": {"start": 0, "end": 4, "labels": ["Person"]}, "from_name": "l", "to_name": "t", "type": "labels"}
    number = {"value": {"number": 5}, "from_name": "n", "to_name": "t", "type": "number"}
    relation = {"from_id": "a", "to_id": "b", "type": "relation", "direction": "right"}
    sent = created(500, 100, span, chosen("oven"), number, relation, chosen("oven", "invoice"), text="x")
    assert studio.post("/webhook", json=sent).json()["learned"] == 1
    assert tags_of(studio, 100) == ["oven", "invoice"]


@pytest.mark.parametrize(
    "sent",
    [
        event("TASKS_CREATED", tasks=[task(1)]),
        event("TASKS_DELETED", tasks=[{"id": 1}]),
        event("PROJECT_UPDATED", NO_TAGS),
        {"action": "PROJECT_DELETED", "id": 2},
        event("LABEL_LINK_CREATED", label_link=[{"id": 1}]),
        event("START_TRAINING"),
    ],
    ids=lambda sent: sent["action"],
)
def test_other_events_are_not_needed(studio, sent):
    position = studio.get("/v1/status").json()["journal_position"]
    assert studio.post("/webhook", json=sent).json() == {"status": "ignored", "learned": 0, "withdrawn": 0}
    assert studio.get("/v1/status").json()["journal_position"] == position


BASE = created(500, 100, chosen("oven"), text="An oven")
WRONG = {
    "no action": lambda sent: sent.pop("action"),
    "no annotation": lambda sent: sent.pop("annotation"),
    "an annotation that is none": lambda sent: sent.update(annotation=5),
    "no number": lambda sent: sent["annotation"].pop("id"),
    "a result that is none": lambda sent: sent["annotation"].update(result="oven"),
    "a choice that is none": lambda sent: sent["annotation"].update(result=[chosen({"a": 1})]),
    "a path of numbers": lambda sent: sent["annotation"].update(result=[chosen([1, 2])]),
    "an empty choice": lambda sent: sent["annotation"].update(result=[chosen("")]),
    "a task without data": lambda sent: sent["task"].pop("data"),
    "no task at all": lambda sent: (sent.pop("task"), sent["annotation"].pop("task")),
    "a configuration without tags": lambda sent: sent["project"].update(label_config=NO_TAGS),
    "a long cell": lambda sent: sent["task"]["data"].update(text="x" * 100_001),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_and_not_learned(studio, change):
    sent = copy.deepcopy(BASE)
    change(sent)
    before = studio.get("/v1/status").json()["journal_position"]
    assert is_problem(studio.post("/webhook", json=sent), 422)["errors"]
    assert studio.get("/v1/status").json()["journal_position"] == before


def test_tasks_and_annotations_that_are_unknown(studio):
    is_problem(studio.post("/webhook", json=created(500, 12345, chosen("oven"))), 404, "ls-12345")
    problem = is_problem(studio.post("/webhook", json=event("ANNOTATIONS_DELETED", annotations=[{"id": 777}])), 404)
    assert "777" in problem["detail"]


# --- Hostile configurations -------------------------------------------------------------------------------------------

HEAD = '<View><Taxonomy name="a" toName="b">'
HOSTILE = {
    "a document type": '<!DOCTYPE a [<!ENTITY x "y">]><View>&x;</View>',
    "entities of entities": "<!DOCTYPE a ["
    + "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 20))
    + "]><View>&e19;</View>",
    "an external entity": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><View>&x;</View>',
    "deep choices": HEAD + '<Choice value="a">' * 50_000,
    "deep views": "<View>" * 100_000,
    "too long": HEAD + " " * 1_000_000,
}


@pytest.mark.parametrize("config", HOSTILE.values(), ids=HOSTILE)
def test_hostile_configurations_are_refused_at_once(config):
    with asking(FakeService()) as client:
        begun = time.process_time()
        is_problem(client.post("/setup", json={"schema": config}), 422, "label_config")
        assert time.process_time() - begun < 1


def test_choices_that_are_no_tags_take_no_room():
    """Each would have the long name of its parent in its path."""
    config = f'{HEAD}<Choice value="{"x" * 300_000}">' + '<Choice value="y"/>' * 20_000 + "</Choice></Taxonomy></View>"
    [control] = controls(config)
    assert control.paths == {}


def test_a_configuration_with_every_kind_of_control():
    found = {control.name: control for control in controls(TWO)}
    assert found["kind"].paths == {
        "Online": ["Online"],
        "Online / Free": ["Online", "Free"],
        "Online / Paid": ["Online", "Paid"],
        "Offline": ["Offline"],
    }
    assert found["mood"].is_single
    [open_control] = controls('<View><Choices name="c" toName="t,u" choice="multiple" value="$options"/></View>')
    assert open_control.result(["any"]) == {
        "from_name": "c",
        "to_name": "t",
        "type": "choices",
        "value": {"choices": ["any"]},
    }


def test_the_doors_take_json_only(studio):
    for path in ("/setup", "/predict", "/webhook"):
        is_problem(studio.post(path, content=b"{}", headers={"Content-Type": "text/plain"}), 415)
        is_problem(studio.post(path, content=b"[]", headers=JSON), 422)
