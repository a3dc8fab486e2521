"""labelrace's classifiers for River: ``pip install 'labelrace[river]'``.

>>> from labelrace.river import RiverClassifier
>>> model = RiverClassifier("race", seed=0)

River gives a model one row at a time, as a dict of features, and so does this: `RiverClassifier` goes wherever River
takes a multi-label classifier, in pipelines, in ``evaluate.progressive_val_score`` and under ``metrics.multioutput``.
"""

from __future__ import annotations

from labelrace.river.classifier import RiverClassifier

__all__ = ["RiverClassifier"]
