"""The same models on a cluster: what comes back does not depend on the workers, and is what one process learns."""

from __future__ import annotations

import dask
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.sparse import csr_array

import labelrace
from labelrace.base.sparse import dense
from labelrace.distributed import cluster, evaluate, fit, predict, worker_tasks
from labelrace.distributed.cluster import connect
from labelrace.distributed.fitting import plan
from labelrace.distributed.sources import FilePiece, pieces_of
from labelrace.distributed.worker_tasks import Settings
from labelrace.exceptions import DataFormatError, DistributedError, MergeError
from labelrace.learners.ridge import Ridge
from labelrace.measures import evaluate as measured
from labelrace.streams.demo import demo_tickets
from labelrace.streams.synthetic import SyntheticStream

PARTS = [(X, csr_array(Y)) for X, Y in SyntheticStream(n_rows=4000, n_features=15, n_labels=12, seed=3).batches(20)]
WHOLE = np.vstack([X for X, _ in PARTS]), np.vstack([Y.toarray() for _, Y in PARTS])
SMALL = PARTS[:40]
# 200 batches: one of 20 rows, and others of 4.
SLICES = [PARTS[0], *((X[a : a + 4], Y[a : a + 4]) for X, Y in PARTS[1:41] for a in range(0, 20, 4))][:200]


def made(name):
    """Make an exact model, small, that is settled where it can be."""
    if name == "RACE with ridge":
        return labelrace.RACEClassifier(method="regression", learner=Ridge(), random_state=0)
    known = labelrace.make_model(name).get_params() if name != "RACE" else {}
    settled = {"n_components": 4, "penalty": 1.0} if "penalty" in known else {}
    chosen = {key: value for key, value in {"random_state": 0, **settled}.items() if key in known}
    return labelrace.RACEClassifier(random_state=0) if name == "RACE" else labelrace.make_model(name, **chosen)


# Every model that is sums is merged in tests/merging. Here are those for which the order of labels, what is drawn, or
# the last batch matters.
EXACT = ("RACE", "occ", "plst", "majority")


def sequential(model, parts):
    for X, Y in parts:
        model.partial_fit(X, Y)
    return model


@pytest.fixture(scope="module")
def one_worker():
    with connect(workers=1) as started:
        yield started


@pytest.mark.parametrize("name", EXACT)
def test_models_that_are_sums_equal_one_pass(client, one_worker, name):
    """In 200 shares, in another order than one pass, on two workers, which give the same bits as one."""
    # The first batch settles what sums are of, and the last one how many labels the majority has.
    order = [0, *np.random.default_rng(7).permutation(np.arange(1, 199)), 199]
    parts = [SLICES[index] for index in order]
    model, again = (fit(made(name), parts, client=on, rounds=1, shares=200) for on in (client, one_worker))
    _equal_one_pass(model, name, SLICES)
    X = WHOLE[0][:200]
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
    np.testing.assert_array_equal(dense(model.predict(X)), dense(again.predict(X)))
    for one, other in zip(_arrays(model._fitted.state), _arrays(again._fitted.state), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["RACE", "occ"])
def test_models_that_are_sums_equal_one_pass_whatever_the_rounds(client, name):
    _equal_one_pass(fit(made(name), SMALL, client=client, rounds=3, shares=7), name, SMALL)


def _equal_one_pass(model, name, parts):
    X, whole = WHOLE[0], sequential(made(name), parts)
    expected, found = whole.decision_function(X), model.decision_function(X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * max(1.0, np.abs(expected).max()))
    sums, wanted = model._fitted.state, whole._fitted.state
    for one, other in zip(_arrays(sums), _arrays(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * max(1.0, np.abs(other).max(initial=0)))


def _arrays(state):
    """List the sums of a state, but for what depends on where a shift is."""
    if isinstance(state, tuple):
        named = zip(getattr(state, "_fields", [""] * len(state)), state, strict=True)
        return [array for name, part in named if name not in ("moments", "pending") for array in _arrays(part)]
    return [np.asarray(state, dtype=float)] if isinstance(state, (float, np.ndarray)) else []


def test_the_default_comes_close_and_is_the_same_on_one_worker_and_on_two(client):
    train = PARTS[:150]
    steps = []
    model = labelrace.LabelRaceClassifier(random_state=0)
    fit(model, train, client=client, shares=4, on_progress=steps.append)
    again = labelrace.LabelRaceClassifier(random_state=0)
    with connect(workers=1) as one:
        fit(again, train, client=one, shares=4)
        lost = labelrace.LabelRaceClassifier(random_state=0)
        with pytest.raises(DistributedError, match=r"scheduler was lost in round 2 .* The model holds the \d+ rows"):
            fit(lost, PARTS, client=one, rounds=4, shares=4, on_progress=lambda _: one.cluster.close())
    assert lost.is_fitted
    np.testing.assert_array_equal(model.decision_function(WHOLE[0]), again.decision_function(WHOLE[0]))
    expected = sequential(labelrace.LabelRaceClassifier(random_state=0), train)
    last = slice(3000, 4000)
    found, wanted = (
        measured(WHOLE[1][last], dense(m.predict(WHOLE[0][last])), measures=["example_f1"])["example_f1"]
        for m in (model, expected)
    )
    assert found > wanted - 0.02
    assert steps[-1].rows == 3000
    assert steps[-1].round == steps[-1].rounds == len(plan(150, 24, 4, 3000))
    assert 0.3 < steps[-1].example_f1 < 1
    # It goes on from what it knows.
    fit(model, PARTS[150:], client=client, rounds=1, shares=2)
    assert model._fitted.state.learners.rows == 4000


def test_a_share_that_is_alone_is_one_pass():
    """Nothing is held out, and nothing joined: the model is the one that learned the same batches, to the bit."""
    batches = [(WHOLE[0][a:b], csr_array(WHOLE[1][a:b])) for a, b in ((0, 500), (500, 800), (800, 1100), (1100, 1900))]
    settings = Settings(batch_size=500, labels=None, n_held_out=200, is_alone=True)
    start = worker_tasks.begin(labelrace.LabelRaceClassifier(random_state=0), batches[:1], settings)
    share = worker_tasks.learn(start, 1, batches[1:], settings)
    joint = worker_tasks.join(start, share)
    sizes = [500, 300, 300, 500, 300]
    cuts = [(WHOLE[0][end - n : end], WHOLE[1][end - n : end]) for n, end in zip(sizes, np.cumsum(sizes), strict=True)]
    expected = sequential(labelrace.LabelRaceClassifier(random_state=0), cuts)
    np.testing.assert_array_equal(joint.model.decision_function(WHOLE[0]), expected.decision_function(WHOLE[0]))
    np.testing.assert_array_equal(dense(joint.model.predict(WHOLE[0])), dense(expected.predict(WHOLE[0])))
    assert joint.rows == expected._fitted.state.learners.rows == 1900
    assert joint.n_tested == 200
    # The start is as it was.
    assert start.model._fitted.state.learners.rows == 500


def test_a_share_that_is_alone_and_outgrows_its_memory_is_refused():
    settings = Settings(batch_size=500, labels=None, n_held_out=200, is_alone=True)
    X, names = WHOLE[0], np.array([f"label {number}" for number in range(12)])
    sets = [{*names[row > 0]} for row in WHOLE[1]]
    few = [labels & {*names[:6]} for labels in sets]
    model = labelrace.LabelRaceClassifier(random_state=0, max_memory=4 * 150 * 8)
    start = worker_tasks.begin(model, [(X[:600], few[:600])], settings)
    with pytest.raises(MergeError, match="labels are compressed"):
        worker_tasks.learn(start, 1, [(X[600:1200], sets[600:1200])], settings)


def test_the_first_rows_are_a_batch_at_least():
    """Of pieces of more than half a batch, two are learned together: with one, the start would be a poor one."""
    pieces = [(WHOLE[0][a : a + 280], csr_array(WHOLE[1][a : a + 280])) for a in range(0, 1120, 280)]
    start = worker_tasks.begin(labelrace.LabelRaceClassifier(random_state=0), pieces, Settings(500, None, 200))
    assert start.rows == 560
    assert start.known_batches == (1, 1, 0, 0)


def test_an_interrupt_leaves_the_rounds_that_were_merged(client):
    def interrupt(progress):
        if progress.round == 2:
            raise KeyboardInterrupt

    model = labelrace.LabelRaceClassifier(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        fit(model, PARTS, client=client, rounds=4, shares=4, on_progress=interrupt)
    assert 500 <= model._fitted.state.learners.rows < 4000
    model.predict(WHOLE[0])


@pytest.fixture(scope="module")
def tickets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tickets")
    rows = demo_tickets()[:3000]
    for index in range(2):
        table = pa.Table.from_pylist(rows[1200 * index : 1200 * (index + 1)])
        parquet.write_table(table, folder / f"tickets-{index}.parquet", row_group_size=300)
    return folder, rows


def test_the_tagger_from_parquet_files_and_from_delayed_tables(client, tickets, tmp_path):
    folder, rows = tickets
    whole = labelrace.Tagger("tags", random_state=0).partial_fit(rows[:2400])
    source = str(folder / "tickets-*.parquet")
    assert len(pieces_of(source, as_tables=True)) == 8
    tagger = fit(labelrace.Tagger("tags", random_state=0), source, client=client, rounds=2, shares=3)
    assert tagger.n_rows_ == 2400
    assert tagger.score(rows[2400:]) > whole.score(rows[2400:]) - 0.03
    delayed = [dask.delayed(rows[start : start + 300]) for start in range(0, 2400, 300)]
    again = fit(labelrace.Tagger("tags", random_state=0), delayed, client=client, rounds=2, shares=3)
    assert again.predict(rows[2400:]) == tagger.predict(rows[2400:])
    frame = predict(tagger, source)
    with dask.config.set(scheduler="synchronous"):
        found = frame.compute()["labels"]
    assert [set(labels) for labels in found] == tagger.predict(rows[:2400])
    paths = predict(tagger, source, out=tmp_path / "predicted", client=client)
    assert sum(parquet.read_table(path).num_rows for path in paths) == 2400


def test_what_goes_wrong_is_said_in_one_sentence(client, tickets, tmp_path, monkeypatch):
    folder, _ = tickets
    with pytest.raises(MergeError, match="RACEClassifier cannot be learned in shares: with adaptive encoding"):
        fit(labelrace.make_model("race-cls-adaptive", random_state=0), PARTS, client=client)
    compressed = labelrace.LabelRaceClassifier(random_state=0, max_memory=200), labelrace.HashedRACEClassifier()
    for each in compressed:
        with pytest.raises(MergeError, match=r"labels are compressed.* Learn it in one process, or use 'race' with"):
            fit(each, PARTS, client=client)
        assert not each.is_fitted
    broken = tmp_path / "broken.csv"
    broken.write_text("body,tags\nthe oven,hot\nx,y,z\n")
    with pytest.raises(DataFormatError, match=r"broken\.csv.*3"):
        fit(labelrace.Tagger("tags"), broken, client=client)
    (tmp_path / "no.parquet").write_bytes(b"PAR1 this is none")
    with pytest.raises(DataFormatError, match=r"no\.parquet"):
        fit(labelrace.Tagger("tags"), tmp_path / "no.parquet", client=client)
    for source, message in ((str(folder / "none-*.csv"), "there is no such file"), (3, "source must be files")):
        with pytest.raises(ValueError, match=message):
            fit(labelrace.Tagger("tags"), source, client=client)
    monkeypatch.setattr(cluster, "_TIMEOUT", "1s")
    with pytest.raises(DistributedError, match="no Dask scheduler at tcp"):
        fit(labelrace.Tagger("tags"), str(folder / "*.parquet"), scheduler="tcp://127.0.0.1:9")


def test_models_and_datasets_as_tasks(client, tmp_path):
    stream = SyntheticStream(n_rows=300, n_features=6, n_labels=4, seed=0)
    results = evaluate(["majority", "negative"], [stream], out=tmp_path, client=client, batch_size=100, runs=2)
    [(_, records)] = results.values()
    assert sum(record["kind"] == "done" for record in records) == 4
    # What is done is not done again.
    [(_, again)] = evaluate(
        ["majority", "negative"], [stream], out=tmp_path, client=client, batch_size=100, runs=2, resume=True
    ).values()
    assert again == records


def test_plans_are_fixed_by_the_pieces():
    for n_pieces, rounds, shares in ((1, 16, None), (7, 16, None), (129, 16, 8), (1000, 4, 32)):
        planned = plan(n_pieces, rounds, shares)
        assert [index for each in planned for share in each for index in share] == list(range(n_pieces))
    assert str(FilePiece("a.parquet", 2, 0, 50)) == "a.parquet, row group 2, rows 0 to 49 of it"
