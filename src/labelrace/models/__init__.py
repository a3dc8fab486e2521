"""One method, one file: the pure algorithm above, its scikit-learn class below."""

from labelrace.models.bmad import BMaDClassifier
from labelrace.models.chains import ClassifierChainsClassifier
from labelrace.models.cl import CompressedLabelingClassifier
from labelrace.models.constant import ConstantClassifier
from labelrace.models.cplst import CPLSTClassifier
from labelrace.models.cs import CompressedSensingClassifier
from labelrace.models.cssp import CSSPClassifier
from labelrace.models.default import LabelRaceClassifier
from labelrace.models.delayed import DelayedLabels
from labelrace.models.faie import FaIEClassifier
from labelrace.models.kcca import KCCAClassifier
from labelrace.models.moplms import MOPLMSClassifier
from labelrace.models.plst import PLSTClassifier
from labelrace.models.race import OfflineRACEClassifier, RACEClassifier
from labelrace.models.relevance import BinaryRelevanceClassifier
from labelrace.models.ridge import RidgeClassifier

__all__ = [
    "BMaDClassifier",
    "BinaryRelevanceClassifier",
    "CPLSTClassifier",
    "CSSPClassifier",
    "ClassifierChainsClassifier",
    "CompressedLabelingClassifier",
    "CompressedSensingClassifier",
    "ConstantClassifier",
    "DelayedLabels",
    "FaIEClassifier",
    "KCCAClassifier",
    "LabelRaceClassifier",
    "MOPLMSClassifier",
    "OfflineRACEClassifier",
    "PLSTClassifier",
    "RACEClassifier",
    "RidgeClassifier",
]
