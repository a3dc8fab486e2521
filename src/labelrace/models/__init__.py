"""One method, one file: the pure algorithm above, its scikit-learn class below.

Classes are imported when first used: the names of models are known without them.
"""

from __future__ import annotations

from importlib import import_module
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
    from labelrace.models.plst import PLSTClassifier
    from labelrace.models.race import OfflineRACEClassifier, RACEClassifier
    from labelrace.models.rbm import RBMClassifier
    from labelrace.models.relevance import BinaryRelevanceClassifier
    from labelrace.models.ridge import RidgeClassifier

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
]

_HOMES = {
    "AROWClassifier": "arow",
    "AdaGradClassifier": "adagrad",
    "BMaDClassifier": "bmad",
    "BinaryRelevanceClassifier": "relevance",
    "CPLSTClassifier": "cplst",
    "CSSPClassifier": "cssp",
    "ClassifierChainsClassifier": "chains",
    "CompressedLabelingClassifier": "cl",
    "CompressedSensingClassifier": "cs",
    "ConstantClassifier": "constant",
    "DelayedLabels": "delayed",
    "EaHTClassifier": "eaht",
    "FaIEClassifier": "faie",
    "HashedRACEClassifier": "hashed",
    "ISOUPTreeClassifier": "isoup",
    "KCCAClassifier": "kcca",
    "LabelRaceClassifier": "default",
    "MANIACClassifier": "maniac",
    "MBRChunksClassifier": "mbr_chunks",
    "MBRClassifier": "mbr",
    "MLHTClassifier": "mlht",
    "MLkNNClassifier": "mlknn",
    "MOPLMSClassifier": "moplms",
    "MWCClassifier": "mwc",
    "OfflineRACEClassifier": "race",
    "PLSTClassifier": "plst",
    "RACEClassifier": "race",
    "RBMClassifier": "rbm",
    "RidgeClassifier": "ridge",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelrace.models' has no attribute {name!r}")
    return getattr(import_module(f"labelrace.models.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
