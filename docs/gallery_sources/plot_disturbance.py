"""
A disturbance
=============

For a while somebody tags wrongly: in the middle of this stream, 1,000 rows are learned with the labels of other rows.
Then all is as before. When errors grow, nobody can know whether the world has changed for good. So after an alarm the
default has two models, one that remembers and one that forgets, and predicts with the one that has been better on the
last rows. We measure with the true labels, also where wrong ones are learned.
"""

import matplotlib.pyplot as plt
import numpy as np

from labelrace import LabelRaceClassifier
from labelrace.measures import evaluate
from labelrace.streams.synthetic import SyntheticStream

data = SyntheticStream(n_rows=12_000, n_features=40, n_labels=20, seed=3).load()
X, true = data.X, data.Y.toarray()
wrong = true.copy()
wrong[6000:7000] = np.random.default_rng(0).permutation(true[6000:7000])

# %%
# Besides the default: a model that never looks at its errors, and one that forgets fast all the time.

models = {
    "default": LabelRaceClassifier(random_state=0),
    "no detection": LabelRaceClassifier(detect_drift=False, random_state=0),
    "no detection, half_life=500": LabelRaceClassifier(
        detect_drift=False, half_life=500, random_state=0
    ),
}
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.axvspan(6000, 7000, color="lightgray", label="wrong labels are learned")
for name, model in models.items():
    ends, quality = [], []
    for start in range(0, 12_000, 250):
        rows = slice(start, start + 250)
        if start:
            found = evaluate(true[rows], model.predict(X[rows]), measures="example_f1")
            quality.append(found["example_f1"])
            ends.append(rows.stop)
        model.partial_fit(X[rows], wrong[rows])
    axes.plot(ends, quality, label=name)
    after = np.mean(np.array(quality)[np.array(ends) > 7250])
    said = f"{model.n_alarms_:.0f} alarms, {model.n_drifts_:.0f} confirmed"
    print(f"{name}: F1 after row 7,250 {after:.3f}; {said}")

axes.set(xlabel="rows of the stream", ylabel="F1, mean of a batch", ylim=(0, 1))
axes.legend(loc="lower left")
plt.show()

# %%
# While the wrong labels come, the default follows them, as it would follow a lasting change. One batch of right ones is
# enough to go back to the model that remembers, and the alarm is not confirmed. A model without detection loses less
# here; the example of a stream that drifts shows what it loses where the change lasts.
