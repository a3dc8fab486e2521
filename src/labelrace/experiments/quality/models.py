"""The models, and the one that times are compared with."""

from __future__ import annotations

from collections.abc import Iterable

from labelrace.evaluation import ModelSpec, as_specs
from labelrace.models import RACEClassifier
from labelrace.models.registry import is_online, model_names

__all__ = ["REFERENCE", "quality_models"]

REFERENCE = "race-cls-fixed, fast"

# What makes the published form slower, and exact to the digit of the authors' program.
_PUBLISHED = ("learner", "start", "zero_score")


def quality_models(names: Iterable[str] | None = None) -> list[ModelSpec]:
    """Return the models to compare, all online ones by default, after the reference: the default `RACEClassifier`.

    Examples
    --------
    >>> reference, obr = quality_models(["obr"])
    >>> reference.make(0)
    RACEClassifier(random_state=0)
    """
    chosen = list(dict.fromkeys(names)) if names is not None else model_names(online=True)
    for name in chosen:
        if not is_online(name):
            raise ValueError(f"{name} learns all data at once, not batch by batch: it has no place in this comparison")
    if not chosen:
        raise ValueError("there are no models to run")
    defaults = RACEClassifier().get_params(deep=False)
    reference = ModelSpec("race-cls-fixed", {name: defaults[name] for name in _PUBLISHED}, REFERENCE)
    return as_specs([reference, *chosen])
