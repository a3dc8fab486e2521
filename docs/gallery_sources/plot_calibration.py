"""
Calibration
===========

A probability of 0.8 should mean that eight of ten such labels are present. We collect the probabilities that two models
give to rows they have not learned yet, put them into ten bins, and count how many of the labels in each bin are there.
The default calibrates its probabilities on the stream; those of naive Bayes follow from the assumption that features
are independent, which they are not.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelrace
from labelrace.streams.synthetic import SyntheticStream

stream = SyntheticStream(n_rows=6000, n_features=40, n_labels=20, seed=4)
models = {
    "default": labelrace.make_model("race", random_state=0),
    "binary relevance with naive Bayes": labelrace.make_model("obr"),
}

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(6, 6), sharex=True, height_ratios=(3, 1), layout="constrained"
)
top.plot([0, 1], [0, 1], color="gray", linestyle=":", label="perfectly calibrated")
for number, (name, model) in enumerate(models.items()):
    probabilities, present = [], []
    for batch, (X, Y) in enumerate(stream.batches(250)):
        if batch >= 4:  # the first 1,000 rows are only learned
            probabilities.append(model.predict_proba(X).ravel())
            present.append(Y.toarray().ravel())
        model.partial_fit(X, Y)
    p, y = np.concatenate(probabilities), np.concatenate(present)
    bins = np.minimum((10 * p).astype(int), 9)
    sizes = np.bincount(bins, minlength=10)
    means, shares = (np.bincount(bins, v, 10) / np.maximum(sizes, 1) for v in (p, y))
    error = np.abs(means - shares) @ sizes / sizes.sum()
    top.plot(means, shares, marker="o", label=f"{name}: error {error:.3f}")
    bottom.bar(np.arange(0.03, 1, 0.1) + 0.04 * number, sizes, width=0.04, label=name)

top.set(ylabel="share of labels that are present", ylim=(0, 1.02))
bottom.set(xlabel="predicted probability", ylabel="labels in the bin", yscale="log")
top.legend(loc="upper left")
bottom.legend(loc="upper center", fontsize="small")
plt.show()

# %%
# The points of the default lie on the diagonal: its probabilities can be taken at their word. Of the labels to which
# naive Bayes gives 0.8 to 0.9, only a third are present.
