"""Labels that a model meets later: it becomes the model that knew them, always absent, from the start."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace import parameters
from labelrace.exceptions import GrowthError
from labelrace.models import labels, naming, validation
from labelrace.typing import AnyMatrix, Array

__all__ = ["draw_seed", "grow_labels", "later_labels", "new_labels"]


def draw_seed(random_state: Any) -> int:
    """Choose the number from which all that is drawn later is drawn.

    It is kept with the model, so that one that was saved and loaded draws the same.
    """
    rng = validation.generator(random_state)
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if isinstance(random_state, np.random.Generator) and hasattr(rng.bit_generator.seed_seq, "spawn"):
        # A child draws: what the generator itself would draw next is left to the encoder.
        rng = np.random.Generator(rng.bit_generator.spawn(1)[0])
    return int(rng.integers(2**63))


def later_labels(model: Any, Y: Any, n_rows: int) -> AnyMatrix:
    """Check the labels of a later batch; the model gets to know those that are new."""
    n_known, allow_missing = len(model.classes_), model.supports_missing_labels
    checked = labels.later_labels(Y, n_rows, n_known, model.label_names_, allow_missing=allow_missing)
    if checked.matrix.shape[1] > n_known:
        grow_labels(model, checked.matrix.shape[1])
    model.label_names_ = checked.names
    return checked.matrix


def grow_labels(model: Any, n_labels: int) -> None:
    """Let a model know of more labels; what it draws for them depends on its seed and on how many it knows."""
    learned, n_known = model._learned, len(model.classes_)
    reason = learned.algorithm.why_no_new_labels()
    if reason:
        raise GrowthError(
            f"Y has {n_labels} labels, but {type(model).__name__} has learned with {n_known} and cannot take new "
            f"labels: {reason}."
        )
    model._refuse_labels(n_labels)
    rng = np.random.default_rng([model._seed, n_known])
    model._learned = learned.with_state(learned.algorithm.grow_labels(learned.state, n_labels, rng))
    model.classes_ = np.arange(n_labels)


def new_labels(model: Any, new: Any) -> tuple[int, Array | None]:
    """Check how many labels are to be added, or their names: return how many there are then, and all names."""
    known: Array | None = model.label_names_
    if isinstance(new, str) or not (isinstance(new, (int, np.integer)) or hasattr(new, "__iter__")):
        raise ValueError(f"new={new!r} does not do: give a whole number, or a list of names.")
    names = [str(name) for name in new] if hasattr(new, "__iter__") else None
    if names is None:
        parameters.check_whole("new", new, 1)
    count = int(new) if names is None else len(names)
    if count < 1:
        raise ValueError("new is empty: give at least one name.")
    if (names is None) != (known is None):
        need = "names, as the model's labels have names" if names is None else "a number: the labels have no names"
        raise ValueError(f"new={new!r} does not fit: give {need}.")
    if names is None or known is None:
        return len(model.classes_) + count, None
    if len({*names, *known}) < count + len(known):
        raise ValueError("new has a name twice, or one that the model knows already.")
    return len(known) + count, naming.as_array([*known, *names])
