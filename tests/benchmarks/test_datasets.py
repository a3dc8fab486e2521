"""Datasets are found where they are, and named where they are not; what takes long or is refused is left out."""

import numpy as np
import pytest
import scipy.sparse

import labelrace
from benchmarks.datasets import Source, counted, find_datasets, find_paper_datasets
from benchmarks.plan import Part, cost_of, within
from labelrace.base.registry import model_names
from labelrace.evaluation import ModelSpec


@pytest.fixture
def sources(all_sources):
    return {source.name: source for source in all_sources}


def test_names_differ_in_case_and_hyphens_and_arff_comes_first(tmp_path):
    for name in ("cal500.arff", "CAL500.mat", "nus_wide.svm.gz", "rcv1s1.mat", "enron.xml"):
        (tmp_path / name).touch()
    sources, missing, _ = find_paper_datasets([tmp_path])
    assert {source.name: source.data.name for source in sources} == {
        "CAL500": "cal500.arff",
        "NUS-WIDE": "nus_wide.svm.gz",
    }
    # A part of rcv1v2 is not rcv1v2, and label names are no data.
    assert missing == ["delicious", "enron", "mediamill", "rcv1v2"]


def test_some_of_the_papers_datasets_by_name(tmp_path):
    for name in ("cal500.arff", "enron.arff", "bibtex.arff"):
        (tmp_path / name).touch()
    sources, missing, _ = find_paper_datasets([tmp_path], ["Enron"])
    assert [source.name for source in sources] == ["enron"]
    assert missing == ["delicious", "mediamill", "NUS-WIDE", "rcv1v2"]
    for name in ("delicious", "bibtex"):
        with pytest.raises(FileNotFoundError, match=rf"'{name}'.*CAL500, enron"):
            find_paper_datasets([tmp_path], [name])


def test_given_folders_come_before_the_environment(tiny, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    (other / "enron.arff").touch()
    monkeypatch.setenv("LABELRACE_DATA", str(other))
    assert find_paper_datasets([tiny]).sources[0].data.parent == tiny
    assert find_paper_datasets().sources[0].data.parent == other
    with pytest.raises(FileNotFoundError, match="nowhere"):
        find_paper_datasets([tmp_path / "nowhere"])


def test_facts_are_counted(tiny):
    source = counted(Source("enron", tiny / "enron.arff"))
    Y = labelrace.load_dataset(tiny / "enron.arff").Y.toarray()
    assert source.facts[:3] == (250, 8, 5)
    assert source.facts.cardinality == pytest.approx(Y.sum() / 250)
    assert source.facts.label_sets == len(np.unique(Y, axis=0))


def test_unreadable_files_and_unknown_names_are_told(tiny):
    (tiny / "odd.csv").write_text("a,b\n1,2\n")
    sources, _, unreadable = find_datasets([tiny])
    assert [(source.name, source.batch_size) for source in sources] == [("enron", 100)]
    assert "odd.csv" in unreadable[0]
    with pytest.raises(FileNotFoundError, match=r"'atlantis'.*enron"):
        find_datasets([tiny], ["atlantis"])


def test_every_model_has_a_cost(all_sources):
    for source in all_sources:
        for name in model_names(online=True):
            assert cost_of(name, source).seconds > 0


def seconds_of(parts):
    return sum(cost_of(model.name, part.source).seconds for part in parts for model in part.models)


def test_the_slowest_are_left_out_first(sources):
    models = tuple(ModelSpec(model) for model in ("race-cls-fixed", "mbr", "obr", "race"))
    parts = [Part(sources[name], models) for name in ("enron", "delicious")]
    assert within(parts, 3, 1e9) == (parts, [])
    half = seconds_of(parts) / 2
    kept, notes = within(parts, 1, half, "race-cls-fixed")
    assert [("mbr" in [model.label for model in part.models]) for part in kept] == [True, False]
    assert seconds_of(kept) <= half
    assert notes == ["Left out on delicious, as they take long or much memory: mbr. --all runs them."]
    assert within(parts[1:], 1, 0.0, "race-cls-fixed")[0] == []


def test_what_does_not_fit_into_memory_is_left_out(sources):
    kept, notes = within([Part(sources["rcv1v2"], (ModelSpec("eaht"), ModelSpec("race")))], 1, 1e9)
    assert [model.label for model in kept[0].models] == ["race"]
    assert "eaht" in notes[0]


@pytest.mark.parametrize("name", ["ridge", "maniac"])
def test_models_that_refuse_many_features_are_left_out(sources, name):
    assert within([Part(sources["rcv1v2"], (ModelSpec(name),))], 1, 1e9)[0] == []
    X, Y = scipy.sparse.csr_array(([1.0], [0], [0, 1, 1]), shape=(2, 20_001)), np.eye(2)
    with pytest.raises(ValueError, match="X must have at most 20000 feature columns, got 20001"):
        labelrace.make_model(name).partial_fit(X, Y)
