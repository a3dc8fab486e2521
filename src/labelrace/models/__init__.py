"""One method, one file: the pure algorithm above, its scikit-learn class below."""

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
