"""One method, one file: the pure algorithm above, its scikit-learn class below."""

from labelrace.models.chains import ClassifierChainsClassifier
from labelrace.models.constant import ConstantClassifier
from labelrace.models.default import LabelRaceClassifier
from labelrace.models.delayed import DelayedLabels
from labelrace.models.eaht import EaHTClassifier
from labelrace.models.isoup import ISOUPTreeClassifier
from labelrace.models.mbr import MBRClassifier
from labelrace.models.mbr_chunks import MBRChunksClassifier
from labelrace.models.mlht import MLHTClassifier
from labelrace.models.mlknn import MLkNNClassifier
from labelrace.models.mwc import MWCClassifier
from labelrace.models.plst import PLSTClassifier
from labelrace.models.race import OfflineRACEClassifier, RACEClassifier
from labelrace.models.rbm import RBMClassifier
from labelrace.models.relevance import BinaryRelevanceClassifier

__all__ = [
    "BinaryRelevanceClassifier",
    "ClassifierChainsClassifier",
    "ConstantClassifier",
    "DelayedLabels",
    "EaHTClassifier",
    "ISOUPTreeClassifier",
    "LabelRaceClassifier",
    "MBRChunksClassifier",
    "MBRClassifier",
    "MLHTClassifier",
    "MLkNNClassifier",
    "MWCClassifier",
    "OfflineRACEClassifier",
    "PLSTClassifier",
    "RACEClassifier",
    "RBMClassifier",
]
