"""Datasets are found where they are, named where they are not, and never replaced in silence."""

import numpy as np
import pytest

from labelrace.experiments.datasets import counted, find_paper_datasets
from labelrace.experiments.paper import make_plan
from labelrace.experiments.published import paper_datasets
from labelrace.streams.synthetic import like


def test_missing_datasets_are_named(tiny):
    sources, missing, _ = find_paper_datasets([tiny])
    assert [source.name for source in sources] == ["enron"]
    assert missing == ["CAL500", "delicious", "mediamill", "NUS-WIDE", "rcv1v2"]


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


def test_given_folders_come_before_the_environment(tiny, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    (other / "enron.arff").touch()
    monkeypatch.setenv("LABELRACE_DATA", str(other))
    assert find_paper_datasets([tiny]).sources[0].data.parent == tiny
    assert find_paper_datasets().sources[0].data.parent == other


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        find_paper_datasets([tmp_path / "nowhere"])


def test_synthetic_streams_are_called_so_and_the_datasets_stay_missing(tiny):
    sources, missing, _ = find_paper_datasets([tiny], synthetic=True, synthetic_rows=300)
    assert missing == [source.name for source in sources if source.synthetic]
    assert [source.title for source in sources if not source.synthetic] == ["enron"]
    assert {source.name for source in sources} == set(paper_datasets())
    for source in sources:
        assert source.synthetic == ("synthetic" in source.title)


def test_facts_are_counted(tiny, source):
    facts = counted(source("enron", tiny / "enron.arff")).facts
    assert facts[:3] == (250, 8, 5)
    assert facts.density == pytest.approx(facts.cardinality / 5)
    assert 1 < facts.label_sets <= 32


def test_label_sets_do_not_depend_on_how_labels_are_stored(source):
    stream = like("CAL500", n_rows=30)
    distinct = len(np.unique(stream.load().Y.toarray(), axis=0))
    assert counted(source("CAL500", stream)).facts.label_sets == distinct


def test_plan_has_the_papers_batch_sizes_and_protocols(all_sources):
    plan = make_plan(all_sources, ["2", "3", "4", "sweep"])
    sizes = {part.source.name: part.source.batch_size for part in plan}
    assert sizes == {"CAL500": 50, "enron": 100, "delicious": 500, "mediamill": 500, "NUS-WIDE": 500, "rcv1v2": 500}
    assert {part.kind for part in plan if part.options.get("protocol") == "holdout"} == {"holdout"}
    assert {part.kind for part in plan} == {"variants", "baselines", "holdout", "sweep"}
    assert plan[0].source.name == "CAL500"
    assert len({(part.source.title, part.kind) for part in plan}) == len(plan) == 6 * 3 + 2


def test_sweep_goes_from_the_logarithm_to_its_square(all_sources):
    [cal500, enron] = make_plan(all_sources, ["sweep"])
    counts = [spec.parameters["n_components"] for spec in cal500.models if spec.name == "race-reg-fixed"]
    assert counts == [8, 16, 24, 32, 40, 48, 56, 64]
    assert enron.models[4].label == "race-cls-adaptive k=30"


def test_tables_share_what_they_have_in_common(all_sources):
    [part] = make_plan(all_sources[:1], ["2"])
    both = make_plan(all_sources[:1], ["2", "3"])
    assert part == both[0]


def test_an_unknown_table(all_sources):
    with pytest.raises(ValueError, match="'5'"):
        make_plan(all_sources, ["2", "5"])
