"""What every online multi-label model must do, as checks that anybody can run on a model of their own.

A model is anything with ``partial_fit(X, y)``, ``predict(X)`` and ``decision_function(X)``; one whose ``is_online`` is
False, or that has no ``partial_fit``, learns by ``fit(X, y)``. It need not be a scikit-learn estimator.

Examples
--------
>>> import numpy as np
>>> from labelrace import checks
>>> class Frequent:  # predicts the labels that at least half of the rows had
...     def partial_fit(self, X, y):
...         self.counts = getattr(self, "counts", 0) + y.sum(axis=0)
...         self.rows = getattr(self, "rows", 0) + X.shape[0]
...
...     def decision_function(self, X):
...         return np.tile(self.counts / self.rows - 0.5, (X.shape[0], 1))
...
...     def predict(self, X):
...         return self.decision_function(X) >= 0
>>> checks.check_model(Frequent())
Traceback (most recent call last):
    ...
AssertionError: check_refused_batches: <...Frequent object at 0x...>: it learned labels of 2, as its first batch,
instead of raising a ValueError
"""

from labelrace.checks.inputs import permute_known
from labelrace.checks.suite import CHECKS, check_model, iter_checks

__all__ = ["CHECKS", "check_model", "iter_checks", "permute_known"]
