"""The scikit-learn shell: classes that check, name and remember, and let the core compute."""

from labelrace.estimators.race import RACEClassifier

__all__ = ["RACEClassifier"]
