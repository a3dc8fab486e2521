"""Many models, many runs."""

import importlib
import signal
import sys
import time
from functools import partial

import numpy as np
import pytest
from helpers.records import lasting
from scipy.sparse import csr_array
from sklearn.ensemble import BaggingClassifier

import labelrace
import labelrace.streams
from labelrace.evaluation import (
    Checkpoint,
    ModelSpec,
    as_reliability,
    as_specs,
    averages,
    experiment,
    prequential,
    read_run,
    run,
)
from labelrace.evaluation.workers import process_context
from labelrace.learners.sgd import SGD
from labelrace.measures import evaluate, expected_calibration_error

needs_kill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
MODELS = ["race-cls-fixed", ("race-cls-adaptive", {"n_components": 4})]


@pytest.fixture
def settings(data):
    return {"source": data, "models": MODELS, "batch_size": 20, "runs": 2, "seed": 7}


def test_records_follow_the_schema(settings, tmp_path):
    manifest, records = run(**settings, out=tmp_path / "out", jobs=1)
    assert (manifest, records) == read_run(tmp_path / "out")
    assert list(manifest) == [
        *("format", "version", "created", "protocol", "source", "models", "runs", "seed", "batch_size", "measures"),
        *("zero_division", "machine"),
    ]
    assert manifest["format"] == 1
    assert manifest["version"] == labelrace.__version__
    assert manifest["protocol"] == "prequential"
    assert list(manifest["source"]) == [
        "name",
        "kind",
        "checksum",
        "rows",
        "features",
        "labels",
        "cardinality",
        "label_names",
    ]
    assert manifest["source"]["checksum"].startswith("sha256:")
    assert manifest["models"][1] == {"name": "race-cls-adaptive", "parameters": {"n_components": 4}}
    assert list(manifest["machine"]) == ["platform", "python", "numpy", "scipy", "scikit-learn", "cpus"]

    assert [one["kind"] for one in records] == ["batch", "batch", "labels", "done"] * 4
    batch, labels, done = records[0], records[2], records[3]
    assert list(batch) == [
        *("kind", "model", "run", "seed", "batch", "start", "end", "whole", "measures", "seconds", "memory"),
    ]
    assert list(batch["seconds"]) == ["predict", "learn", "measure"]
    assert list(labels) == ["kind", "model", "run", "frequency", "f1", "rows", "first"]
    assert len(labels["frequency"]) == len(labels["f1"]) == 6
    assert list(done) == ["kind", "model", "run", "rows", "seconds", "memory"]
    assert done["rows"] == 60
    # The first batch is learned too.
    assert done["seconds"]["learn"] > sum(one["seconds"]["learn"] for one in records[:2])


def test_records_are_what_prequential_gives(settings, data, tmp_path):
    _, records = run(**settings, out=tmp_path / "out", jobs=1)
    seeds = {one["run"]: one["seed"] for one in records if one["kind"] == "batch"}
    assert len(set(seeds.values())) == 2
    for number, seed in seeds.items():
        model = labelrace.make_model("race-cls-adaptive", n_components=4, random_state=seed)
        expected = list(prequential(model, data, 20))
        mine = [one for one in records if (one["model"], one["run"]) == ("race-cls-adaptive", number)]
        names = ("batch", "start", "end", "measures", "seconds", "memory", "whole")
        points = [Checkpoint(**{name: one[name] for name in names}) for one in mine if one["kind"] == "batch"]
        assert [point.measures for point in points] == [point.measures for point in expected]
        assert averages(points) == averages(expected)


def test_labels_are_counted_over_all_tests(data, tmp_path):
    _, records = run(data, "race-cls-fixed", batch_size=20, out=tmp_path, jobs=1)
    model = labelrace.make_model("race-cls-fixed", random_state=records[0]["seed"])
    predicted = []
    for X, Y in data.batches(20):
        if predicted or hasattr(model, "classes_"):
            predicted.append(csr_array(model.predict(X)).toarray())
        model.partial_fit(X, Y)
    Y, P = data.Y.toarray()[20:], np.vstack(predicted)
    np.testing.assert_allclose(records[-2]["frequency"], Y.mean(axis=0))
    np.testing.assert_allclose(records[-2]["f1"], 2 * (Y * P).sum(axis=0) / (Y.sum(axis=0) + P.sum(axis=0)))


def test_parallel_equals_serial(settings, tmp_path):
    _, serial = run(**settings, out=tmp_path / "serial", jobs=1)
    _, parallel = run(**settings, out=tmp_path / "parallel", jobs=2)
    assert lasting(parallel) == lasting(serial)


def test_holdout(settings, tmp_path):
    manifest, records = run(**settings, out=tmp_path, jobs=1, protocol="holdout", iterations=2, test_share=0.33)
    assert manifest["protocol"] == "holdout"
    assert manifest["options"] == {"iterations": 2}
    assert [one["kind"] for one in records] == ["batch", "batch", "labels", "done"] * 4
    assert records[-1]["rows"] == 40


def test_options_of_the_protocol(settings, tmp_path):
    manifest, records = run(**settings, out=tmp_path, jobs=1, delay=1, missing=0.2, memory=True)
    assert manifest["options"] == {"delay": 1, "missing": 0.2}
    assert [one["kind"] for one in records[:3]] == ["batch", "labels", "done"]
    assert records[2]["memory"] < 1e7


@pytest.mark.parametrize("jobs", [1, 2])
def test_failures_stay_alone(data, tmp_path, jobs):
    models = ["race-cls-fixed", ModelSpec("race-cls-fixed", {"n_components": -1}, label="broken")]
    _, records = run(data, models, batch_size=20, runs=2, out=tmp_path / "out", jobs=jobs)
    broken = [one for one in records if one["model"] == "broken"]
    assert [(one["kind"], one["run"]) for one in lasting(broken)] == [("failed", 0), ("failed", 1)]
    assert "n_components" in broken[0]["error"]
    assert sum(one["kind"] == "done" for one in records) == 2


def test_divergence_is_a_failure(dataset, tmp_path):
    data = dataset()
    data.X[:] *= 1e4
    diverging = ModelSpec("race-reg-fixed", {"learner": SGD(rate=1.0)})
    _, records = run(data, [diverging], batch_size=20, out=tmp_path, jobs=1)
    assert records[-1]["kind"] == "failed"
    assert records[-1]["error"].startswith("DivergenceError")


def test_resuming(settings, tmp_path):
    _, complete = run(**settings, out=tmp_path / "complete", jobs=1)
    out = tmp_path / "cut"

    def stop(progress):
        if progress.finished == 1 and progress.kind == "batch":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(**settings, out=out, jobs=1, on_progress=stop)
    _, partial_records = read_run(out)
    assert [one["kind"] for one in partial_records] == ["batch", "batch", "labels", "done", "batch"]

    began = []
    _, resumed = run(**settings, out=out, jobs=1, resume=True, on_progress=began.append)
    assert lasting(resumed) == lasting(complete)
    assert resumed[:4] == partial_records[:4]
    assert sum(one.kind == "started" for one in began) == began[-1].total == 3

    before = (out / "records.jsonl").read_bytes()
    run(**settings, out=out, resume=True)
    assert (out / "records.jsonl").read_bytes() == before


def test_what_cannot_be_resumed(settings, tmp_path):
    run(**settings, out=tmp_path, jobs=1)
    with pytest.raises(FileExistsError, match="not empty"):
        run(**settings, out=tmp_path, jobs=1)
    with pytest.raises(ValueError, match="seed is 7 there and 8 now"):
        run(**{**settings, "seed": 8}, out=tmp_path, jobs=1, resume=True)
    with pytest.raises(ValueError, match="measures is"):
        run(**settings, measures="micro_f1", out=tmp_path, jobs=1, resume=True)


def test_repeats_can_be_skipped(data, tmp_path):
    models = ["race-cls-fixed", ModelSpec("race-cls-fixed", {"random_state": 3}, label="always the same")]

    def count(**options):
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        _, records = run(data, models, batch_size=20, runs=3, out=out, jobs=1, **options)
        return sum(one["kind"] == "done" for one in records)

    assert count() == 6
    assert count(skip_repeats=True) == 4
    assert count(skip_repeats=True, missing=0.1) == 6


def test_sources(tmp_path, data):
    path = tmp_path / "tiny.arff"
    rows = [f"{x[0]},{x[1]},{y[0]},{y[1]}" for x, y in zip(data.X, data.Y.toarray(), strict=True)]
    header = ["@relation tiny", "@attribute a numeric", "@attribute b numeric"]
    header += ["@attribute c {0,1}", "@attribute d {0,1}", "@data"]
    path.write_text("\n".join(header + rows))
    for number, source in enumerate([path, str(path)]):
        out = tmp_path / str(number)
        manifest, records = run(source, ["race-cls-fixed"], labels=2, batch_size=30, out=out, jobs=1)
        assert manifest["source"]["name"] == "tiny"
        assert manifest["source"]["features"] == manifest["source"]["labels"] == 2
        assert records[-1]["kind"] == "done"


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"models": []}, ValueError, "no models"),
        ({"models": ["race-cls-fixed"] * 2}, ValueError, "different labels"),
        ({"models": ["rice"]}, ValueError, "rice"),
        ({"models": [("race-cls-fixed", {"n_rabbits": 2})]}, ValueError, "n_rabbits"),
        ({"models": [5]}, TypeError, "a model must be"),
        ({"measures": "happiness"}, ValueError, "happiness"),
        ({"runs": 0}, ValueError, "runs must be a whole number of at least 1"),
        ({"jobs": 0}, ValueError, "jobs must be a whole number of at least 1"),
        ({"batch_size": 0}, ValueError, "batch_size must be a whole number of at least 1"),
        ({"protocol": "guess"}, ValueError, "protocol must be"),
        ({"delay": -1}, ValueError, "delay must be"),
        ({"iterations": 2}, TypeError, "must be some of .* got 'iterations'"),
        ({"labels": 2}, ValueError, "labels must be None"),
        ({"source": 5}, TypeError, "source must be"),
    ],
)
def test_mistakes_leave_no_folder(settings, tmp_path, wrong, error, message):
    with pytest.raises(error, match=message):
        run(**{**settings, **wrong}, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def state_of(path):
    return (path.stat().st_ino, path.stat().st_size) if path.exists() and path.stat().st_size else None


def wait_for_change(path, before, process):
    deadline = time.monotonic() + 60
    while state_of(path) == before and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.001)


@needs_kill
@pytest.mark.parametrize(("jobs", "kills"), [(1, 10), (2, 2)])
def test_killed_at_any_moment(settings, tmp_path, jobs, kills):
    """A run that is killed again and again can be read each time, and ends up as if nothing had happened."""
    settings |= {"batch_size": 6, "runs": 4}
    start = time.perf_counter()
    _, complete = run(**settings, out=tmp_path / "complete", jobs=1)
    duration = time.perf_counter() - start
    expected, out = lasting(complete), tmp_path / "killed"
    rng = np.random.default_rng(jobs)
    for kill in range(kills):
        before = state_of(out / "records.jsonl")
        target = partial(run, **settings, out=out, jobs=jobs, resume=True)
        process = process_context().Process(target=target)
        process.start()
        if kill % 4 < 3:  # the others are killed while they begin
            wait_for_change(out / "records.jsonl", before, process)
        time.sleep(rng.uniform(0, duration / 8))
        process.kill()
        process.join()
        process.close()
        if (out / "manifest.json").exists():
            _, records = read_run(out)
            assert all(record in expected for record in lasting(records))
    _, records = run(**settings, out=out, jobs=1, resume=True)
    assert lasting(records) == expected


def test_calibration_is_that_of_the_probabilities_of_all_tests(data, tmp_path):
    told = []
    settings = {"source": data, "models": ["obr"], "batch_size": 20, "jobs": 1}
    manifest, records = run(**settings, out=tmp_path / "out", calibration=True, on_progress=told.append)
    assert manifest["options"] == {"calibration": True}
    assert [one["kind"] for one in records] == ["batch", "batch", "labels", "calibration", "done"]
    assert {one.kind for one in told} == {"started", "batch", "done"}
    model, tested = labelrace.make_model("obr", categorical_features=data.categorical), []
    list(prequential(model, data, 20, probability_observer=lambda Y, P: tested.append((Y.toarray(), P))))
    Y, P = (np.vstack(parts) for parts in zip(*tested, strict=True))
    assert as_reliability(records[3]).error == pytest.approx(expected_calibration_error(Y, P), abs=1e-12)
    with pytest.raises(ValueError, match="calibration"):
        run(**settings, out=tmp_path / "out", resume=True)
    with pytest.raises(ValueError, match="holdout"):
        run(**settings, out=tmp_path / "other", protocol="holdout", calibration=True)


def test_asking_for_probabilities_changes_no_other_record(settings, tmp_path):
    _, without = run(**settings, out=tmp_path / "without", jobs=1)
    _, with_them = run(**settings, out=tmp_path / "with", jobs=1, calibration=True)
    assert lasting(without) == lasting([one for one in with_them if one["kind"] != "calibration"])


MY_MODEL = '''
import numpy as np

class Frequent:
    """A model of somebody's own, and no scikit-learn estimator: labels that a share of the rows had."""

    def __init__(self, share=0.5):
        self.share = share

    def partial_fit(self, X, y):
        self.counts = getattr(self, "counts", 0) + np.asarray(y.sum(axis=0))
        self.rows = getattr(self, "rows", 0) + X.shape[0]

    def predict(self, X):
        return np.tile(self.counts >= self.share * self.rows, (X.shape[0], 1))
'''


@pytest.fixture
def frequent(tmp_path, monkeypatch):
    """Return a class in a module that other processes can import."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "frequent_model.py").write_text(MY_MODEL)
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("frequent_model").Frequent
    sys.modules.pop("frequent_model")


@pytest.mark.parametrize("jobs", [1, 2])
def test_models_of_ones_own(data, tmp_path, frequent, jobs):
    models = [frequent(), frequent, frequent(0.3), ModelSpec(estimator=frequent(0.9), label="rare"), "race-cls-fixed"]
    manifest, records = run(data, models, batch_size=20, runs=2, out=tmp_path / "out", jobs=jobs)
    names = ["Frequent", "Frequent-2", "Frequent-3", "rare", "race-cls-fixed"]
    assert [model["name"] for model in manifest["models"]] == names
    assert manifest["models"][0] == {"name": "Frequent", "parameters": {}, "model": "frequent_model:Frequent"}
    assert sorted(one["model"] for one in records if one["kind"] == "done") == sorted(names * 2)

    def measures(name):
        return [one["measures"] for one in lasting(records) if one["kind"] == "batch" and one["model"] == name]

    expected = [point.measures for point in prequential(frequent(), data, 20)]
    assert measures("Frequent") == measures("Frequent-2") == expected * 2
    assert measures("rare") == [point.measures for point in prequential(frequent(0.9), data, 20)] * 2
    assert not hasattr(models[0], "counts")


def test_estimators_are_seeded_where_they_are_not(data, tmp_path):
    models = [
        labelrace.RACEClassifier(n_components=3),
        ModelSpec(estimator=labelrace.RACEClassifier(random_state=5), parameters={"n_components": 4}, label="seeded"),
    ]
    manifest, records = run(data, models, batch_size=20, runs=2, out=tmp_path, jobs=1, skip_repeats=True)
    path = f"{labelrace.RACEClassifier.__module__}:RACEClassifier"
    assert manifest["models"] == [
        {"name": "RACEClassifier", "parameters": {"n_components": 3}, "model": path},
        {"name": "seeded", "parameters": {"n_components": 4, "random_state": 5}, "model": path},
    ]
    assert [(one["model"], one["run"]) for one in records if one["kind"] == "done"] == [
        ("RACEClassifier", 0),
        ("seeded", 0),
        ("RACEClassifier", 1),
    ]
    made = ModelSpec(estimator=labelrace.RACEClassifier()).make(7, data.categorical)
    assert made.random_state == 7
    assert made.categorical_features is data.categorical


def test_one_model_may_stand_alone(data, tmp_path, remembers):
    assert [spec.label for spec in as_specs(BaggingClassifier())] == ["BaggingClassifier"]  # which is iterable
    manifest, records = run(data, remembers, batch_size=20, out=tmp_path, jobs=1)
    assert manifest["models"][0]["name"] == "Remembers"
    assert records[-1]["kind"] == "done"


def test_the_manifest_names_the_labels(data, tmp_path):
    manifest, records = run(data, ["race-cls-fixed"], batch_size=20, out=tmp_path / "named", jobs=1)
    assert manifest["source"]["label_names"] == list(data.label_names)
    assert len(records[-2]["f1"]) == len(data.label_names)

    class Bare:
        """A stream that tells nothing of itself."""

        def batches(self, size):
            return data.batches(size)

    manifest, _ = run(Bare(), ["race-cls-fixed"], batch_size=20, out=tmp_path / "bare", jobs=1)
    assert manifest["source"] == {
        **{"name": "Bare", "kind": "file", "checksum": None, "rows": None, "features": 5, "labels": 6},
        **{"cardinality": None, "label_names": None},
    }


def test_a_file_is_parsed_once(tmp_path, data, monkeypatch):
    path = tmp_path / "tiny.npz"
    labelrace.streams.write_dataset(data, path)
    opened = []

    def counting(*arguments):
        opened.append(arguments)
        return labelrace.streams.open_stream(*arguments)

    monkeypatch.setattr(experiment, "open_stream", counting)
    run(path, MODELS, batch_size=20, runs=3, out=tmp_path / "out", jobs=1)
    assert len(opened) == 1


def test_a_run_on_other_labels_of_the_same_file_is_not_resumed(tmp_path):
    rng = np.random.default_rng(0)
    u, w = (rng.permutation(np.repeat([0, 1], 50)) for _ in range(2))
    rows = "".join(f"{a:.4f},{b},{c}\n" for a, b, c in zip(u + 0.1 * rng.normal(size=100), u, w, strict=True))
    (tmp_path / "data.csv").write_text(f"x,u,w\n{rows}")
    settings = {"out": tmp_path / "run", "batch_size": 20, "jobs": 1}
    manifest, _ = run(tmp_path / "data.csv", ["majority"], labels=["u"], **settings)
    assert manifest["source"]["label_names"] == ["u"]
    for labels in (["w"], ["u", "w"], ["w", "u"]):
        with pytest.raises(ValueError, match="was started with other settings"):
            run(tmp_path / "data.csv", ["majority"], labels=labels, resume=True, **settings)
    run(tmp_path / "data.csv", ["majority"], labels=["u"], resume=True, **settings)


def test_with_many_labels_the_best_ones_are_measured_without_scores_of_all(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    # One label a row: those that always came together would have equal scores.
    labels = np.minimum(rng.geometric(0.02, size=120), 1200)
    Y = csr_array((np.ones(120), labels, np.arange(121)), shape=(120, 1201))
    names = [f"label{j}" for j in range(1201)]
    data = labelrace.streams.Dataset(rng.random((120, 5)), Y, list("abcde"), names, np.zeros(5, bool), "many")
    model = labelrace.make_model("race-hashed", max_memory="1MB", random_state=0)
    of_scores = []
    for start in (40, 80):
        model.partial_fit(data.X[start - 40 : start], Y[start - 40 : start])
        rows = slice(start, start + 40)
        scores = model.decision_function(data.X[rows])
        of_scores.append(evaluate(Y[rows], scores=scores, measures=["precision_at_5", "ndcg_at_5"]))
    monkeypatch.setattr(type(model), "decision_function", None)
    spec = ModelSpec("race-hashed", {"max_memory": "1MB", "random_state": 0})
    manifest, records = run(data, [spec], out=tmp_path / "run", batch_size=40, jobs=1)
    assert manifest["measures"][-3:] == ["precision_at_1", "precision_at_5", "ndcg_at_5"]
    batches = [record["measures"] for record in records if record["kind"] == "batch"]
    for found, expected in zip(batches, of_scores, strict=True):
        assert found["precision_at_5"] == pytest.approx(expected["precision_at_5"])
        assert found["ndcg_at_5"] == pytest.approx(expected["ndcg_at_5"])
