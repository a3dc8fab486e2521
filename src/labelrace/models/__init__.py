"""One method, one file: the pure algorithm above, its scikit-learn class below.

Classes are imported when first used: the names of models are known without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelrace.models.chains import ClassifierChainsClassifier
    from labelrace.models.constant import ConstantClassifier
    from labelrace.models.default import LabelRaceClassifier
    from labelrace.models.delayed import DelayedLabels
    from labelrace.models.plst import PLSTClassifier
    from labelrace.models.race import OfflineRACEClassifier, RACEClassifier
    from labelrace.models.relevance import BinaryRelevanceClassifier

__all__ = [
    "BinaryRelevanceClassifier",
    "ClassifierChainsClassifier",
    "ConstantClassifier",
    "DelayedLabels",
    "LabelRaceClassifier",
    "OfflineRACEClassifier",
    "PLSTClassifier",
    "RACEClassifier",
]

_HOMES = {
    "BinaryRelevanceClassifier": "relevance",
    "ClassifierChainsClassifier": "chains",
    "ConstantClassifier": "constant",
    "DelayedLabels": "delayed",
    "LabelRaceClassifier": "default",
    "OfflineRACEClassifier": "race",
    "PLSTClassifier": "plst",
    "RACEClassifier": "race",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelrace.models' has no attribute {name!r}")
    return getattr(import_module(f"labelrace.models.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
