"""Models by name, for the command, the benchmarks and everybody who compares methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from labelrace.estimators import RACEClassifier

__all__ = ["make_model", "model_names"]

_METHODS: dict[str, Literal["classification", "regression"]] = {"cls": "classification", "reg": "regression"}
_ENCODINGS: tuple[Literal["fixed", "adaptive"], ...] = ("fixed", "adaptive")
_MODELS: dict[str, tuple[Callable[..., Any], type]] = {
    f"race-{short}-{encoding}": (partial(RACEClassifier.paper, method=method, encoding=encoding), RACEClassifier)
    for short, method in _METHODS.items()
    for encoding in _ENCODINGS
}


def model_names() -> list[str]:
    """List the names that `make_model` knows.

    Examples
    --------
    >>> import labelrace
    >>> labelrace.model_names()
    ['race-cls-fixed', 'race-cls-adaptive', 'race-reg-fixed', 'race-reg-adaptive']
    """
    return list(_MODELS)


def make_model(name: str, **parameters: Any) -> Any:
    """Make a model by its name.

    Parameters
    ----------
    name : str
        One of `model_names`.
    **parameters
        Parameters of the model's class.

    Examples
    --------
    >>> import labelrace
    >>> labelrace.make_model("race-cls-fixed", random_state=0)
    RACEClassifier(learner=NaiveBayes(numeric='binned', smoothing=1.0),
                   random_state=0, start='first_batch', zero_score='present')
    """
    if name not in _MODELS:
        raise ValueError(f"There is no model {name!r}. Known models: {', '.join(_MODELS)}.")
    make, kind = _MODELS[name]
    known = [parameter for parameter in inspect.signature(kind).parameters if parameter not in _fixed(make)]
    unknown = [parameter for parameter in parameters if parameter not in known]
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}. It has: {', '.join(known)}.")
    return make(**parameters)


def _fixed(make: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters that a model's name has settled."""
    return make.keywords if isinstance(make, partial) else {}
