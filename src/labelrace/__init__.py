"""Online multi-label classification by label compression.

>>> import labelrace
>>> model = labelrace.make_model("race-cls-fixed", random_state=0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelrace.models import (
        BinaryRelevanceClassifier,
        ClassifierChainsClassifier,
        ConstantClassifier,
        OfflineRACEClassifier,
        PLSTClassifier,
        RACEClassifier,
        RACEEnsembleClassifier,
    )
    from labelrace.models.persistence import load
    from labelrace.models.registry import make_model, model_names
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
    "BinaryRelevanceClassifier": "labelrace.models",
    "ClassifierChainsClassifier": "labelrace.models",
    "ConstantClassifier": "labelrace.models",
    "OfflineRACEClassifier": "labelrace.models",
    "PLSTClassifier": "labelrace.models",
    "RACEClassifier": "labelrace.models",
    "RACEEnsembleClassifier": "labelrace.models",
    "load": "labelrace.models.persistence",
    "load_dataset": "labelrace.streams",
    "make_model": "labelrace.models.registry",
    "model_names": "labelrace.models.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelrace' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
