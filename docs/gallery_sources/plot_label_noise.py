"""
Label noise
===========

People who tag make mistakes. Here a share of the rows is learned with the label sets of other rows, from none of them
to half of them. Rows with right labels, which are not learned, tell what the default model has found out nevertheless,
after 500, 1,500 and 6,000 rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelrace
from labelrace.measures import evaluate
from labelrace.streams.synthetic import SyntheticStream

data = SyntheticStream(n_rows=8000, n_features=40, n_labels=20, seed=5).load()
X, Y = data.X, data.Y.toarray()
X_test, Y_test = X[6000:], Y[6000:]
rng = np.random.default_rng(0)

# %%
# In the rows of ``wrong`` the label sets are exchanged, so that each label is as frequent as before.

shares = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
quality = {500: [], 1500: [], 6000: []}
for share in shares:
    learned = Y[:6000].copy()
    wrong = np.flatnonzero(rng.random(6000) < share)
    learned[wrong] = learned[rng.permutation(wrong)]
    model = labelrace.LabelRaceClassifier(random_state=0)
    for start in range(0, 6000, 250):
        model.partial_fit(X[start : start + 250], learned[start : start + 250])
        if start + 250 in quality:
            found = evaluate(Y_test, model.predict(X_test), measures=["example_f1"])
            quality[start + 250].append(found["example_f1"])

# %%

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for (n_rows, values), marker in zip(quality.items(), "osD", strict=True):
    axes.plot(shares, values, marker=marker, label=f"{n_rows:,} rows learned")
axes.set(xlabel="share of rows learned with wrong labels", ylim=(0, 1))
axes.set_ylabel("F1 of a row's labels, right ones")
axes.legend(loc="lower left")
plt.show()

# %%
# Mistakes that go in all directions cost little where rows are many: with half of the rows wrong, the model that has
# learned 6,000 rows loses less than half of what the model of 500 rows loses. Mistakes that are always the same are
# another matter: a model cannot tell them from the truth.
