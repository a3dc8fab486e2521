"""One model learned by many: shares of rows are learned side by side, and their gains added up.

A *share* is a part of the rows, and the worker that learns it. The four verbs are the same for every model that can be
merged, and for the tagger:

- ``start(model)`` is the model that a share begins with. Of a model that is sums it has learned nothing, but knows what
  the first batch settled; of any other it is a copy.
- ``gain(start, end)`` is what a share has learned between ``start`` and ``end``: a value that can be sent and added.
- ``add(one, other)`` is the gain of both. Labels, features, words and tags are matched by name, so that gains may be
  added in any tree; where order matters, the rows of ``other`` are the later ones.
- ``join(start, total, X, y)`` is the model of the start and of all that was gained. The rows ``X, y``, which no share
  has learned, are learned last; a model that is not sums chooses by them how far it trusts the sum.

For sums the joint model is the one that learned all rows, to round-off (`is_exact`). The default comes close.

None of them changes its arguments. How a method is joined, the method says itself: `labelrace.base.algorithm.Shares`
is what it offers, `labelrace.linear.merge` is the one of the default. Two models are merged without a common start by
their method ``merge``: `labelrace.base.fitted` for sums, `labelrace.linear.merge`, `labelrace.extreme.merge`, and
`labelrace.tables.merge` for taggers. `labelrace.distributed` moves these values between workers, and does no more.

Examples
--------
>>> import labelrace
>>> from labelrace.merging import add, gain, join, start
>>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 1], [1, 0], [1, 0], [1, 1]]
>>> common = labelrace.make_model("ridge").partial_fit(X[:2], Y[:2])
>>> one, other = (start(common).partial_fit(X[row : row + 1], Y[row : row + 1]) for row in (2, 3))
>>> joint = join(common, add(gain(common, one), gain(common, other)))
>>> joint.predict([[3.0]]).tolist()
[[1, 1]]
"""

from __future__ import annotations

from labelrace.merging.shares import TaggerGain, add, gain, is_exact, is_ready, join, refuse, start

__all__ = ["TaggerGain", "add", "gain", "is_exact", "is_ready", "join", "refuse", "start"]
