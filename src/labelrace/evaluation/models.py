"""The models of a run: by name, with parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from labelrace.models.registry import make_model

__all__ = ["AnyModel", "ModelSpec", "as_specs"]


@dataclass(frozen=True)
class ModelSpec:
    """A model to run.

    Parameters
    ----------
    name : str
        What `labelrace.make_model` knows it by.
    parameters : mapping
        What else it is made with.
    label : str
        What records and reports call it; by default its name. It tells variants of one model apart.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.name)

    def make(self, seed: int, categorical: Any = None) -> Any:
        """Make the model, with the seed and the mask of nominal features if it takes them and they are not given."""
        offered = {"random_state": seed, "categorical_features": categorical}
        fitting = {key: value for key, value in offered.items() if self.takes(key)}
        return make_model(self.name, **{**fitting, **self.parameters})

    def takes(self, parameter: str) -> bool:
        """Tell whether the model has a parameter."""
        return parameter in make_model(self.name, **self.parameters).get_params(deep=False)

    @property
    def is_random(self) -> bool:
        """Whether the model depends on the seed of a run."""
        return self.takes("random_state") and "random_state" not in self.parameters

    def describe(self) -> dict[str, Any]:
        """Return the model as a manifest holds it."""
        description = {"name": self.label, "parameters": {key: _plain(self.parameters[key]) for key in self.parameters}}
        return description if self.label == self.name else {**description, "model": self.name}


AnyModel: TypeAlias = str | tuple[str, Mapping[str, Any]] | ModelSpec


def as_specs(models: str | Iterable[AnyModel]) -> list[ModelSpec]:
    """Return models as specifications, after making each once, so that a mistake shows before the run begins.

    Examples
    --------
    >>> specs = as_specs(["race-cls-fixed", ("race-reg-fixed", {"n_components": 8})])
    >>> [spec.describe() for spec in specs]
    [{'name': 'race-cls-fixed', 'parameters': {}}, {'name': 'race-reg-fixed', 'parameters': {'n_components': 8}}]
    """
    specs = [_as_spec(model) for model in ([models] if isinstance(models, str) else models)]
    if not specs:
        raise ValueError("there are no models to run")
    labels = [spec.label for spec in specs]
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(f"there are two models called {label!r}: tell them apart by ModelSpec(…, label=…)")
    for spec in specs:
        make_model(spec.name, **spec.parameters)
    return specs


def _as_spec(model: AnyModel) -> ModelSpec:
    if isinstance(model, ModelSpec):
        return model
    return ModelSpec(model) if isinstance(model, str) else ModelSpec(*model)


def _plain(value: Any) -> Any:
    """Return a parameter as JSON can hold it: itself, or what it looks like."""
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)
