"""Online multi-label classification by label compression.

>>> import labelrace
>>> model = labelrace.make_model("race-cls-fixed", random_state=0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelrace.models.adagrad import AdaGradClassifier as AdaGradClassifier
    from labelrace.models.arow import AROWClassifier as AROWClassifier
    from labelrace.models.bmad import BMaDClassifier as BMaDClassifier
    from labelrace.models.chains import ClassifierChainsClassifier as ClassifierChainsClassifier
    from labelrace.models.cl import CompressedLabelingClassifier as CompressedLabelingClassifier
    from labelrace.models.constant import ConstantClassifier as ConstantClassifier
    from labelrace.models.cplst import CPLSTClassifier as CPLSTClassifier
    from labelrace.models.cs import CompressedSensingClassifier as CompressedSensingClassifier
    from labelrace.models.cssp import CSSPClassifier as CSSPClassifier
    from labelrace.models.default import LabelRaceClassifier as LabelRaceClassifier
    from labelrace.models.delayed import DelayedLabels as DelayedLabels
    from labelrace.models.eaht import EaHTClassifier as EaHTClassifier
    from labelrace.models.faie import FaIEClassifier as FaIEClassifier
    from labelrace.models.hashed import HashedRACEClassifier as HashedRACEClassifier
    from labelrace.models.isoup import ISOUPTreeClassifier as ISOUPTreeClassifier
    from labelrace.models.kcca import KCCAClassifier as KCCAClassifier
    from labelrace.models.maniac import MANIACClassifier as MANIACClassifier
    from labelrace.models.mbr import MBRClassifier as MBRClassifier
    from labelrace.models.mbr_chunks import MBRChunksClassifier as MBRChunksClassifier
    from labelrace.models.mlht import MLHTClassifier as MLHTClassifier
    from labelrace.models.mlknn import MLkNNClassifier as MLkNNClassifier
    from labelrace.models.moplms import MOPLMSClassifier as MOPLMSClassifier
    from labelrace.models.mwc import MWCClassifier as MWCClassifier
    from labelrace.models.persistence import load as load
    from labelrace.models.plst import PLSTClassifier as PLSTClassifier
    from labelrace.models.race import OfflineRACEClassifier as OfflineRACEClassifier
    from labelrace.models.race import RACEClassifier as RACEClassifier
    from labelrace.models.rbm import RBMClassifier as RBMClassifier
    from labelrace.models.registry import make_model as make_model
    from labelrace.models.registry import model_names as model_names
    from labelrace.models.registry import register_model as register_model
    from labelrace.models.relevance import BinaryRelevanceClassifier as BinaryRelevanceClassifier
    from labelrace.models.ridge import RidgeClassifier as RidgeClassifier
    from labelrace.streams import load_dataset as load_dataset
    from labelrace.tagger import Tagger as Tagger

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
__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelrace' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
