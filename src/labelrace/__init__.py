"""Online multi-label classification by label compression.

>>> import labelrace
>>> model = labelrace.make_model("race-cls-fixed", random_state=0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelrace.estimators import (
        BinaryRelevanceClassifier,
        ClassifierChainsClassifier,
        ConstantClassifier,
        OfflineRACEClassifier,
        PLSTClassifier,
        RACEClassifier,
        RACEEnsembleClassifier,
    )
    from labelrace.persistence import load
    from labelrace.registry import make_model, model_names
    from labelrace.streams import load_dataset

__all__ = [
    "BinaryRelevanceClassifier",
    "ClassifierChainsClassifier",
    "ConstantClassifier",
    "OfflineRACEClassifier",
    "PLSTClassifier",
    "RACEClassifier",
    "RACEEnsembleClassifier",
    "__version__",
    "load",
    "load_dataset",
    "make_model",
    "model_names",
]

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used: `import labelrace` alone loads nothing heavy.
_HOMES = {
    "BinaryRelevanceClassifier": "labelrace.estimators",
    "ClassifierChainsClassifier": "labelrace.estimators",
    "ConstantClassifier": "labelrace.estimators",
    "OfflineRACEClassifier": "labelrace.estimators",
    "PLSTClassifier": "labelrace.estimators",
    "RACEClassifier": "labelrace.estimators",
    "RACEEnsembleClassifier": "labelrace.estimators",
    "load": "labelrace.persistence",
    "load_dataset": "labelrace.streams",
    "make_model": "labelrace.registry",
    "model_names": "labelrace.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelrace' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
