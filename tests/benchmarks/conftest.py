"""What the tests of benchmarks share: a tiny dataset in a file, and made-up outcomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from benchmarks.datasets import Source
from benchmarks.paper import PaperSummary, compare, make_plan
from benchmarks.plan import Part
from benchmarks.published import paper_datasets, published
from labelrace.measures import measure_names
from labelrace.report import Summary
from labelrace.streams import Dataset, write_dataset

MACHINE = {"platform": "Linux", "python": "3.12", "numpy": "2", "scipy": "1", "scikit-learn": "1", "cpus": 2}


@pytest.fixture(autouse=True)
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what datasets this computer has."""
    monkeypatch.setenv("LABELRACE_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-cache"))


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Write an enron that is not the paper's; return its folder."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 8))
    Y = (X @ rng.normal(size=(8, 5)) > 0.5).astype(np.int8)
    names = [tuple(f"{kind}{number}" for number in range(count)) for kind, count in (("x", 8), ("y", 5))]
    folder = tmp_path / "data"
    folder.mkdir()
    write_dataset(Dataset(X, csr_array(Y), *names, np.zeros(8, dtype=bool), "enron"), folder / "enron.arff")
    return folder


def make_outcome(part: Part, shift: float = 0.0, failures: tuple[dict[str, Any], ...] = ()) -> tuple[Part, Summary]:
    """Return an outcome whose values are the paper's, where it has them, and a shift."""
    table = {"variants": "2", "baselines": "3", "holdout": "4", "sweep": "2", "own": "3"}.get(part.kind, "related")
    models = []
    for spec in part.models:
        means = {}
        for measure in measure_names(part.options["measures"]):
            reference = published().get((table, part.source.name, spec.name, measure))
            means[measure] = (reference.value if reference else 0.5) + shift
        models.append(
            {
                "name": spec.label,
                "ranked": True,
                "measures": {name: {"mean": mean, "sd": 0.01, "runs": 10} for name, mean in means.items()},
                "seconds": {"total": 1.0},
                "parameters": dict(spec.parameters),
            }
        )
    manifest = {"runs": 10, "seed": 0, "version": "0.1.0", "created": "2024-05-06T07:08:09+00:00", "machine": MACHINE}
    # A summary has its models by rank, not in the order of the plan.
    return part, {"models": models[::-1], "manifest": manifest, "failures": list(failures)}


@pytest.fixture
def make_up() -> Callable[..., PaperSummary]:
    """Return a function that makes a summary of made-up outcomes on these datasets, as if they were the paper's."""

    def make(sources: list[Source], tables: tuple[str, ...] = ("2", "3", "4"), own=(), **more: Any) -> PaperSummary:
        missing = [name for name in paper_datasets() if name not in {source.name for source in sources}]
        outcomes = [make_outcome(part, **more) for part in make_plan(sources, tables, own)]
        return compare(outcomes, sources, missing, tables)

    return make


@pytest.fixture
def all_sources() -> list[Source]:
    """Return the paper's datasets, in files that do not exist."""
    return [Source(name, Path(f"{name}.arff"), facts=facts) for name, (facts, _) in paper_datasets().items()]
