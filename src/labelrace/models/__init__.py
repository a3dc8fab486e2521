"""The scikit-learn shell: classes that check, name and remember, and let the core compute."""

from labelrace.models.chains import ClassifierChainsClassifier
from labelrace.models.constant import ConstantClassifier
from labelrace.models.default import RACEEnsembleClassifier
from labelrace.models.offline import OfflineRACEClassifier, PLSTClassifier
from labelrace.models.race import RACEClassifier
from labelrace.models.relevance import BinaryRelevanceClassifier

__all__ = [
    "BinaryRelevanceClassifier",
    "ClassifierChainsClassifier",
    "ConstantClassifier",
    "OfflineRACEClassifier",
    "PLSTClassifier",
    "RACEClassifier",
    "RACEEnsembleClassifier",
]
