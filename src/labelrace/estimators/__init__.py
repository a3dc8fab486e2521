"""The scikit-learn shell: classes that check, name and remember, and let the core compute."""

from labelrace.estimators.chains import ClassifierChainsClassifier
from labelrace.estimators.constant import ConstantClassifier
from labelrace.estimators.ensemble import RACEEnsembleClassifier
from labelrace.estimators.offline import OfflineRACEClassifier, PLSTClassifier
from labelrace.estimators.race import RACEClassifier
from labelrace.estimators.relevance import BinaryRelevanceClassifier

__all__ = [
    "BinaryRelevanceClassifier",
    "ClassifierChainsClassifier",
    "ConstantClassifier",
    "OfflineRACEClassifier",
    "PLSTClassifier",
    "RACEClassifier",
    "RACEEnsembleClassifier",
]
