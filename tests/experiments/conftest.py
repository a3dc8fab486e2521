"""What the tests of benchmarks share: a tiny dataset in a file, and made-up outcomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelrace.experiments.datasets import Source
from labelrace.experiments.paper import PaperSummary, compare, make_plan
from labelrace.experiments.plan import Part
from labelrace.experiments.published import paper_datasets, published
from labelrace.measures import measure_names
from labelrace.report import Summary
from labelrace.streams import Dataset, write_dataset

MACHINE = {"platform": "Linux", "python": "3.12", "numpy": "2", "scipy": "1", "scikit-learn": "1", "cpus": 2}


def make_dataset(n_rows: int = 250, n_features: int = 8, n_labels: int = 5, name: str = "enron") -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    Y = (X @ rng.normal(size=(n_features, n_labels)) > 0.5).astype(np.int8)
    features = tuple(f"x{number}" for number in range(n_features))
    labels = tuple(f"y{number}" for number in range(n_labels))
    return Dataset(X, csr_array(Y), features, labels, np.zeros(n_features, dtype=bool), name)


@pytest.fixture(autouse=True)
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what datasets this computer has."""
    monkeypatch.setenv("LABELRACE_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-cache"))


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Write an enron that is not the paper's; return its folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    write_dataset(make_dataset(), folder / "enron.arff")
    return folder


def make_model(
    means: dict[str, float], sd: float | None = 0.01, runs: int = 10, seconds: float = 1.0
) -> dict[str, Any]:
    """Return a model as `labelrace.report.summarize` describes it."""
    return {
        "ranked": True,
        "measures": {name: {"mean": mean, "sd": sd, "runs": runs} for name, mean in means.items()},
        "seconds": {"total": seconds},
        "parameters": {},
    }


def make_outcome(part: Part, shift: float = 0.0, failures: tuple[dict[str, Any], ...] = ()) -> tuple[Part, Summary]:
    """Return an outcome whose values are the paper's, where it has them, and a shift."""
    table = {"variants": "2", "baselines": "3", "holdout": "4", "sweep": "2", "related": "related"}[part.kind]
    models = []
    for spec in part.models:
        means = {}
        for measure in measure_names(part.options["measures"]):
            reference = published().get((table, part.source.name, spec.name, measure))
            means[measure] = (reference.value if reference else 0.5) + shift
        models.append(make_model(means) | {"name": spec.label, "parameters": dict(spec.parameters)})
    manifest = {"runs": 10, "seed": 0, "version": "0.1.0", "created": "2024-05-06T07:08:09+00:00", "machine": MACHINE}
    return part, {"models": models, "manifest": manifest, "failures": list(failures)}


@pytest.fixture
def make_up() -> Callable[..., PaperSummary]:
    """Return a function that makes a summary of made-up outcomes on these datasets, as if they were the paper's."""

    def make(
        sources: list[Source], tables: tuple[str, ...] = ("2", "3", "4", "sweep"), shift: float = 0.0, **more: Any
    ) -> PaperSummary:
        missing = [name for name in paper_datasets() if name not in {source.name for source in sources}]
        plan = make_plan(sources, tables)
        outcomes = [make_outcome(part, shift, **more) for part in plan]
        return compare(outcomes, sources, missing, tables)

    return make


@pytest.fixture
def outcomes() -> Callable[..., list[tuple[Part, Summary]]]:
    """Return a function that makes up the outcomes of all parts that some tables need."""
    return lambda sources, tables: [make_outcome(part) for part in make_plan(sources, tables)]


@pytest.fixture
def source() -> Callable[..., Source]:
    """Return `make_source`."""
    return make_source


@pytest.fixture
def all_sources() -> list[Source]:
    return [make_source(name) for name in paper_datasets()]


def make_source(name: str, data: Any = None) -> Source:
    """Return one of the paper's datasets, in a file that does not exist, or a stream in its place."""
    return Source(name, data or Path(f"{name}.arff"), facts=paper_datasets()[name][0])
