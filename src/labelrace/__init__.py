"""Online multi-label classification by label compression.

>>> import labelrace
>>> model = labelrace.make_model("race-cls-fixed", random_state=0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelrace.models import (
        AdaGradClassifier,
        AROWClassifier,
        BinaryRelevanceClassifier,
        BMaDClassifier,
        ClassifierChainsClassifier,
        CompressedLabelingClassifier,
        CompressedSensingClassifier,
        ConstantClassifier,
        CPLSTClassifier,
        CSSPClassifier,
        DelayedLabels,
        EaHTClassifier,
        FaIEClassifier,
        HashedRACEClassifier,
        ISOUPTreeClassifier,
        KCCAClassifier,
        LabelRaceClassifier,
        MANIACClassifier,
        MBRChunksClassifier,
        MBRClassifier,
        MLHTClassifier,
        MLkNNClassifier,
        MOPLMSClassifier,
        MWCClassifier,
        OfflineRACEClassifier,
        PLSTClassifier,
        RACEClassifier,
        RBMClassifier,
        RidgeClassifier,
    )
    from labelrace.models.persistence import load
    from labelrace.models.registry import make_model, model_names, register_model
    from labelrace.streams import load_dataset
    from labelrace.tagger import Tagger

__all__ = [
    "AROWClassifier",
    "AdaGradClassifier",
    "BMaDClassifier",
    "BinaryRelevanceClassifier",
    "CPLSTClassifier",
    "CSSPClassifier",
    "ClassifierChainsClassifier",
    "CompressedLabelingClassifier",
    "CompressedSensingClassifier",
    "ConstantClassifier",
    "DelayedLabels",
    "EaHTClassifier",
    "FaIEClassifier",
    "HashedRACEClassifier",
    "ISOUPTreeClassifier",
    "KCCAClassifier",
    "LabelRaceClassifier",
    "MANIACClassifier",
    "MBRChunksClassifier",
    "MBRClassifier",
    "MLHTClassifier",
    "MLkNNClassifier",
    "MOPLMSClassifier",
    "MWCClassifier",
    "OfflineRACEClassifier",
    "PLSTClassifier",
    "RACEClassifier",
    "RBMClassifier",
    "RidgeClassifier",
    "Tagger",
    "__version__",
    "load",
    "load_dataset",
    "make_model",
    "model_names",
    "register_model",
]

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used: `import labelrace` alone loads nothing heavy.
_HOMES = {
    "Tagger": "labelrace.tagger",
    "load": "labelrace.models.persistence",
    "load_dataset": "labelrace.streams",
    "make_model": "labelrace.models.registry",
    "model_names": "labelrace.models.registry",
    "register_model": "labelrace.models.registry",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'labelrace' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "labelrace.models")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
