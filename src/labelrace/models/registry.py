"""Models by name, for the command, the benchmarks and everybody who compares methods."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from labelrace.models import (
    BinaryRelevanceClassifier,
    ClassifierChainsClassifier,
    ConstantClassifier,
    OfflineRACEClassifier,
    PLSTClassifier,
    RACEClassifier,
    RACEEnsembleClassifier,
)

__all__ = ["describe_model", "is_online", "make_model", "model_names"]


class _Model(NamedTuple):
    """A class, whether it is made as in the paper, what the name settles, and a line about it."""

    kind: Any
    paper: bool
    settled: dict[str, Any]
    about: str


_MODELS = {
    "race": _Model(
        RACEEnsembleClassifier, False, {}, "the default: several encoders, a decoder that knows the learners' errors"
    ),
    "race-cls-fixed": _Model(
        RACEClassifier,
        True,
        {"method": "classification", "encoding": "fixed"},
        "RACE as published: classifiers, the random encoder stays",
    ),
    "race-cls-adaptive": _Model(
        RACEClassifier,
        True,
        {"method": "classification", "encoding": "adaptive"},
        "RACE as published: classifiers, the encoder follows the decoder",
    ),
    "race-reg-fixed": _Model(
        RACEClassifier,
        True,
        {"method": "regression", "encoding": "fixed"},
        "RACE as published: regressors, the random encoder stays",
    ),
    "race-reg-adaptive": _Model(
        RACEClassifier,
        True,
        {"method": "regression", "encoding": "adaptive"},
        "RACE as published: regressors, the encoder follows the decoder",
    ),
    "race-cls-adaptive-iter3": _Model(
        RACEClassifier,
        True,
        {"method": "classification", "encoding": "adaptive", "iterations": 3},
        "the same as race-cls-adaptive, each batch learned three times",
    ),
    "obr": _Model(BinaryRelevanceClassifier, True, {}, "binary relevance: one naive Bayes a label"),
    "occ": _Model(ClassifierChainsClassifier, True, {"n_chains": 1}, "a classifier chain in random order"),
    "oecc": _Model(
        ClassifierChainsClassifier, True, {"n_chains": 5}, "five classifier chains in random orders, voting"
    ),
    "majority": _Model(
        ConstantClassifier, False, {"strategy": "majority"}, "the most frequent labels, whatever the row"
    ),
    "negative": _Model(ConstantClassifier, False, {"strategy": "negative"}, "no labels, whatever the row"),
    "race-offline": _Model(
        OfflineRACEClassifier,
        True,
        {"method": "classification", "encoding": "fixed"},
        "RACE with all data in one batch (offline)",
    ),
    "plst": _Model(PLSTClassifier, False, {}, "principal label space transformation (offline)"),
}


def model_names(*, online: bool | None = None) -> list[str]:
    """List the names that `make_model` knows.

    Parameters
    ----------
    online : bool or None
        Only the models that learn batch by batch, or only those that do not; None for all.

    Examples
    --------
    >>> import labelrace
    >>> labelrace.model_names(online=False)
    ['race-offline', 'plst']
    """
    return [name for name, model in _MODELS.items() if online is None or model.kind.is_online == online]


def is_online(name: str) -> bool:
    """Tell whether a model learns batch by batch."""
    return bool(_find(name).kind.is_online)


def describe_model(name: str) -> str:
    """Say in a line what a model is."""
    return _find(name).about


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
    kind, paper, settled, _ = _find(name)
    known = [parameter for parameter in inspect.signature(kind).parameters if parameter not in settled]
    unknown = [parameter for parameter in parameters if parameter not in known]
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}. It has: {', '.join(known)}.")
    make = kind.paper if paper else kind
    return make(**settled, **parameters)


def _find(name: str) -> _Model:
    if name not in _MODELS:
        raise ValueError(f"There is no model {name!r}. Known models: {', '.join(_MODELS)}.")
    return _MODELS[name]
