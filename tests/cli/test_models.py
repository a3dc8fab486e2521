"""``labelrace models``: every model, in its group."""

from __future__ import annotations

from labelrace.base.registry import model_group, model_names
from labelrace.base.registry_entries import GROUPS


def test_models_are_listed_by_group(works):
    lines = works("models").splitlines()
    groups = [group for group in GROUPS if any(model_group(name) == group for name in model_names())]
    starts = [next(i for i, line in enumerate(lines) if line.strip() == GROUPS[group]) for group in groups]
    assert starts == sorted(starts)
    for name in model_names():
        position = next(i for i, line in enumerate(lines) if line.split()[:1] == [name])
        assert groups[sum(start < position for start in starts) - 1] == model_group(name)
    assert {"ridge", "plst", "plst-meka", "cplst", "bmad"} <= {
        n for n in model_names() if model_group(n) == "compression"
    }
