"""Online multi-label classification by label compression.

>>> import labelrace
>>> model = labelrace.make_model("race-cls-fixed", random_state=0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelrace.models.adagrad import AdaGradClassifier
    from labelrace.models.arow import AROWClassifier
    from labelrace.models.bmad import BMaDClassifier
    from labelrace.models.chains import ClassifierChainsClassifier
    from labelrace.models.cl import CompressedLabelingClassifier
    from labelrace.models.constant import ConstantClassifier
    from labelrace.models.cplst import CPLSTClassifier
    from labelrace.models.cs import CompressedSensingClassifier
    from labelrace.models.cssp import CSSPClassifier
    from labelrace.models.default import LabelRaceClassifier
    from labelrace.models.delayed import DelayedLabels
    from labelrace.models.eaht import EaHTClassifier
    from labelrace.models.faie import FaIEClassifier
    from labelrace.models.hashed import HashedRACEClassifier
    from labelrace.models.isoup import ISOUPTreeClassifier
    from labelrace.models.kcca import KCCAClassifier
    from labelrace.models.maniac import MANIACClassifier
    from labelrace.models.mbr import MBRClassifier
    from labelrace.models.mbr_chunks import MBRChunksClassifier
    from labelrace.models.mlht import MLHTClassifier
    from labelrace.models.mlknn import MLkNNClassifier
    from labelrace.models.moplms import MOPLMSClassifier
    from labelrace.models.mwc import MWCClassifier
    from labelrace.models.persistence import load
    from labelrace.models.plst import PLSTClassifier
    from labelrace.models.race import OfflineRACEClassifier, RACEClassifier
    from labelrace.models.rbm import RBMClassifier
    from labelrace.models.registry import make_model, model_names, register_model
    from labelrace.models.relevance import BinaryRelevanceClassifier
    from labelrace.models.ridge import RidgeClassifier
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
    "AROWClassifier": "labelrace.models.arow",
    "AdaGradClassifier": "labelrace.models.adagrad",
    "BMaDClassifier": "labelrace.models.bmad",
    "BinaryRelevanceClassifier": "labelrace.models.relevance",
    "CPLSTClassifier": "labelrace.models.cplst",
    "CSSPClassifier": "labelrace.models.cssp",
    "ClassifierChainsClassifier": "labelrace.models.chains",
    "CompressedLabelingClassifier": "labelrace.models.cl",
    "CompressedSensingClassifier": "labelrace.models.cs",
    "ConstantClassifier": "labelrace.models.constant",
    "DelayedLabels": "labelrace.models.delayed",
    "EaHTClassifier": "labelrace.models.eaht",
    "FaIEClassifier": "labelrace.models.faie",
    "HashedRACEClassifier": "labelrace.models.hashed",
    "ISOUPTreeClassifier": "labelrace.models.isoup",
    "KCCAClassifier": "labelrace.models.kcca",
    "LabelRaceClassifier": "labelrace.models.default",
    "MANIACClassifier": "labelrace.models.maniac",
    "MBRChunksClassifier": "labelrace.models.mbr_chunks",
    "MBRClassifier": "labelrace.models.mbr",
    "MLHTClassifier": "labelrace.models.mlht",
    "MLkNNClassifier": "labelrace.models.mlknn",
    "MOPLMSClassifier": "labelrace.models.moplms",
    "MWCClassifier": "labelrace.models.mwc",
    "OfflineRACEClassifier": "labelrace.models.race",
    "PLSTClassifier": "labelrace.models.plst",
    "RACEClassifier": "labelrace.models.race",
    "RBMClassifier": "labelrace.models.rbm",
    "RidgeClassifier": "labelrace.models.ridge",
    "Tagger": "labelrace.tagger",
    "load": "labelrace.models.persistence",
    "load_dataset": "labelrace.streams",
    "make_model": "labelrace.models.registry",
    "model_names": "labelrace.models.registry",
    "register_model": "labelrace.models.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelrace' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
