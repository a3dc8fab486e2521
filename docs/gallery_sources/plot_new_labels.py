"""
New labels appear
=================

In a stream, labels come that nobody has listed beforehand. Here labels are given as sets of names, and four of twenty
first occur in the middle. The model takes a new name as it comes: nothing is declared, and nothing is learned again.
We measure F1 for the labels that were there from the start and for the new ones, on batches not learned yet.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelrace
from labelrace.streams.synthetic import SyntheticStream

shape = {"n_rows": 12_000, "n_features": 40, "n_labels": 20}
stream = SyntheticStream(**shape, new_labels=0.2, zipf=0.3, seed=2)
names = np.array(stream.label_names)


def f1(true, predicted, group):
    """Compute F1 over all pairs of a row and a label of the group."""
    hits = sum(len(t & p & group) for t, p in zip(true, predicted, strict=True))
    both = sum(len(one & group) for one in [*true, *predicted])
    return 2 * hits / both if both else np.nan


# %%
# Each batch is predicted, and then learned.

model = labelrace.LabelRaceClassifier(random_state=0)
tested, known = [], []
for X, Y in stream.batches(250):
    true = [set(names[row > 0].tolist()) for row in Y.toarray()]
    if known:
        tested.append((true, model.predict_labels(X)))
    model.partial_fit(X, true)
    known.append(len(model.label_names_))

# %%
# The labels of the first half of the stream are the old ones.

old = set().union(*(labels for true, _ in tested[:23] for labels in true))
new = set(names.tolist()) - old
rows = 250 * np.arange(1, len(known) + 1)
figure, (top, bottom) = plt.subplots(2, sharex=True, height_ratios=(3, 1))
for group, said in (old, "were there from the start"), (new, "appear after row 6,000"):
    found = [f1(*both, group) for both in tested]
    top.plot(rows[1:], found, label=f"{len(group)} labels that {said}")
top.set(ylabel="F1 of a batch", ylim=(0, 1))
bottom.step(rows, known, color="gray", where="post", label="labels known")
bottom.set(xlabel="rows of the stream", ylabel="labels", ylim=(0, 22))
for axes in (top, bottom):
    axes.legend(loc="lower left")
plt.show()

# %%
# The curve of the new labels starts at zero: no model can predict a name that it has never seen. One batch later it is
# nearly as high as that of the others, and the labels that were there before are predicted as well as they were.
