"""
A model of one's own
====================

Whatever has ``partial_fit`` and ``predict`` can be compared with the models of labelrace. Here is one in a few lines:
it remembers the last 1,000 rows, and gives a row the labels that are frequent among its ten nearest neighbours there.
``register_model`` gives it a name, by which ``make_model``, evaluation and the command know it.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelrace
from labelrace.evaluation import prequential
from labelrace.streams.synthetic import SyntheticStream


class LastRows:
    """Label a row as the nearest ones among the last rows are labelled."""

    def __init__(self, n_rows=1000, n_near=10):
        self.n_rows, self.n_near = n_rows, n_near
        self.X = self.Y = None

    def partial_fit(self, X, Y):
        """Remember the last rows."""
        X, Y = np.asarray(X), Y.toarray()
        self.X = X if self.X is None else np.vstack([self.X, X])[-self.n_rows :]
        self.Y = Y if self.Y is None else np.vstack([self.Y, Y])[-self.n_rows :]
        return self

    def predict(self, X):
        """Give the labels that at least four of ten near rows have."""
        distances = np.square(self.X).sum(axis=1) - 2 * X @ self.X.T
        near = np.argpartition(distances, self.n_near, axis=1)[:, : self.n_near]
        return (self.Y[near].mean(axis=1) >= 0.4).astype(float)


# %%
# Measured on a stream beside the default, binary relevance with naive Bayes, and the most frequent labels.

labelrace.register_model("last-rows", LastRows)
stream = SyntheticStream(n_rows=5000, n_features=40, n_labels=20, seed=8)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name in ("race", "obr", "last-rows", "majority"):
    model = labelrace.make_model(name, random_state=0)
    checkpoints = list(prequential(model, stream, 250, ["example_f1"]))
    quality = [checkpoint.measures["example_f1"] for checkpoint in checkpoints]
    ends = [checkpoint.end for checkpoint in checkpoints]
    axes.plot(ends, quality, label=f"{name}: mean {np.mean(quality):.2f}")
axes.set(xlabel="rows of the stream", ylabel="F1, mean of a batch", ylim=(0, 1))
axes.legend(loc="lower right", ncols=2)
plt.show()

# %%
# A few lines that remember rows are better than binary relevance with naive Bayes here, and not as good as the default.
