"""What a label that is neither there nor predicted counts: in runs and their tables, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from labelrace import make_model
from labelrace.evaluation import averages, holdout, prequential, run
from labelrace.report import print_report, summarize
from labelrace.streams.synthetic import SyntheticStream

STREAM = SyntheticStream(n_rows=300, n_features=10, n_labels=40, seed=0)


def expected() -> float:
    """Return the macro F1 of a model that predicts nothing, by scikit-learn, batch by batch."""
    scores = [f1_score(Y, np.zeros_like(Y), average="macro", zero_division=0) for Y in later_labels()]
    return float(np.mean(scores))


def later_labels() -> list[np.ndarray]:
    """Return the labels of all batches but the first."""
    return [Y.toarray() for _, Y in STREAM.batches(50)][1:]


def test_named_measures_count_as_scikit_learn_does_and_those_of_the_paper_as_the_paper():
    def measured(measures, **options):
        return averages(prequential(make_model("negative"), STREAM, 50, measures, **options))["macro_f1"]

    assert measured(["macro_f1"]) == expected() == 0
    absent = np.mean([(Y.sum(axis=0) == 0).mean() for Y in later_labels()])
    assert measured("paper") == measured(["macro_f1"], zero_division=1) == pytest.approx(absent)
    assert absent > 0.05
    held_out = averages(holdout(make_model("negative"), STREAM, 50, ["macro_f1"], seed=0))
    assert held_out["macro_f1"] == 0


@pytest.mark.parametrize(("measures", "whose"), [("auto", "scikit-learn"), ("paper", "the paper"), ("micro_f1", None)])
def test_a_table_says_how_it_counts(measures, whose, tmp_path):
    from rich.console import Console

    manifest, records = run(STREAM, ["negative"], out=tmp_path / "run", batch_size=50, jobs=1, measures=measures)
    summary = summarize(manifest, records)
    console = Console(record=True, width=200)
    print_report(summary, console)
    text = console.export_text()
    assert (f"as {whose} does." in text) if whose else ("Macro" not in text)
    if whose:
        assert (summary["models"][0]["measures"]["macro_f1"]["mean"] == 0) == (whose == "scikit-learn")
