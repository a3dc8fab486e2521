"""Online multi-label classification by label compression.

>>> import labelrace
>>> model = labelrace.make_model("race-cls-fixed", random_state=0)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labelrace.base.registry_entries import PUBLIC_HOMES

if TYPE_CHECKING:
    from labelrace.base.registry import make_model as make_model
    from labelrace.base.registry import model_names as model_names
    from labelrace.base.registry import register_model as register_model
    from labelrace.base.state_file import load as load
    from labelrace.delayed import DelayedLabels as DelayedLabels
    from labelrace.extreme.classifier import HashedRACEClassifier as HashedRACEClassifier
    from labelrace.linear.classifier import LabelRaceClassifier as LabelRaceClassifier
    from labelrace.race.classifier import OfflineRACEClassifier as OfflineRACEClassifier
    from labelrace.race.classifier import RACEClassifier as RACEClassifier
    from labelrace.related.chains import ClassifierChainsClassifier as ClassifierChainsClassifier
    from labelrace.related.compression.bmad import BMaDClassifier as BMaDClassifier
    from labelrace.related.compression.cl import CompressedLabelingClassifier as CompressedLabelingClassifier
    from labelrace.related.compression.cplst import CPLSTClassifier as CPLSTClassifier
    from labelrace.related.compression.cs import CompressedSensingClassifier as CompressedSensingClassifier
    from labelrace.related.compression.cssp import CSSPClassifier as CSSPClassifier
    from labelrace.related.compression.faie import FaIEClassifier as FaIEClassifier
    from labelrace.related.compression.kcca import KCCAClassifier as KCCAClassifier
    from labelrace.related.compression.maniac import MANIACClassifier as MANIACClassifier
    from labelrace.related.compression.moplms import MOPLMSClassifier as MOPLMSClassifier
    from labelrace.related.compression.plst import PLSTClassifier as PLSTClassifier
    from labelrace.related.compression.ridge import RidgeClassifier as RidgeClassifier
    from labelrace.related.constant import ConstantClassifier as ConstantClassifier
    from labelrace.related.linear.adagrad import AdaGradClassifier as AdaGradClassifier
    from labelrace.related.linear.arow import AROWClassifier as AROWClassifier
    from labelrace.related.neighbours.mlknn import MLkNNClassifier as MLkNNClassifier
    from labelrace.related.neighbours.mwc import MWCClassifier as MWCClassifier
    from labelrace.related.rbm import RBMClassifier as RBMClassifier
    from labelrace.related.relevance import BinaryRelevanceClassifier as BinaryRelevanceClassifier
    from labelrace.related.stacking.mbr import MBRClassifier as MBRClassifier
    from labelrace.related.stacking.mbr_chunks import MBRChunksClassifier as MBRChunksClassifier
    from labelrace.related.trees.eaht import EaHTClassifier as EaHTClassifier
    from labelrace.related.trees.isoup import ISOUPTreeClassifier as ISOUPTreeClassifier
    from labelrace.related.trees.mlht import MLHTClassifier as MLHTClassifier
    from labelrace.serve.client import AsyncClient as AsyncClient
    from labelrace.serve.client import Client as Client
    from labelrace.streams import load_dataset as load_dataset
    from labelrace.tables import Tagger as Tagger

__version__ = "0.1.0"

__all__ = sorted([*PUBLIC_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    # Imported when first used: `import labelrace` alone loads nothing heavy.
    if name not in PUBLIC_HOMES:
        raise AttributeError(f"module 'labelrace' has no attribute {name!r}")
    return getattr(import_module(PUBLIC_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
