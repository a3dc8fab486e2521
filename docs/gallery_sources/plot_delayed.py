"""
Delayed labels
==============

In practice, a row is predicted now and its labels come later. ``DelayedLabels`` keeps predicted rows by their ids until
somebody tells what is right. In this stream the labels change their meaning at row 6,000. We let labels come at once,
and 500 and 2,000 rows later, and see what waiting costs.
"""

import matplotlib.pyplot as plt

import labelrace
from labelrace.measures import evaluate
from labelrace.streams.synthetic import SyntheticStream

shape = {"n_rows": 12_000, "n_features": 40, "n_labels": 20}
data = SyntheticStream(**shape, drift="sudden", seed=7).load()
X, Y = data.X, data.Y.toarray()

# %%
# The ids are row numbers here; in a service they are the numbers of tickets. The first 500 rows come with their labels.

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for delay in (0, 500, 2000):
    model = labelrace.LabelRaceClassifier(random_state=0).partial_fit(X[:500], Y[:500])
    tickets = labelrace.DelayedLabels(model, max_rows=5000)
    ends, quality = [], []
    for start in range(500, 12_000, 250):
        ids = range(start, start + 250)
        predicted = tickets.predict(X[ids], ids)
        quality.append(evaluate(Y[ids], predicted)["example_f1"])
        ends.append(start + 250)
        due = [row for row in tickets.pending_ids if row < start + 250 - delay]
        if due:
            tickets.learn(due, Y[due])
    axes.plot(ends, quality, label=f"{delay} rows late" if delay else "at once")
    print(f"{delay} rows late: {len(tickets)} rows still pending")

axes.axvline(6000, color="gray", linestyle=":", label="the labels change their meaning")
axes.set(xlabel="rows of the stream", ylabel="F1, mean of a batch", ylim=(0, 1))
axes.legend(loc="lower left")
plt.show()

# %%
# Where nothing changes, late labels cost little. After the change, the quality stays low until the first labels of the
# new kind come; from then on the model is back as soon as with labels that come at once.
