"""
A stream that drifts
====================

What the labels mean can change while a model learns: here they depend on the features in one way for 8,000 rows, and
in a quite different way from then on. We compare three settings of the default model. Each batch is predicted first,
measured, and then learned, so the curves show the quality that a user would have had.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelrace
from labelrace.evaluation import prequential
from labelrace.streams.synthetic import SyntheticStream

stream = SyntheticStream(
    n_rows=16_000, n_features=40, n_labels=20, drift="sudden", drift_at=0.5, seed=1
)

# %%
# ``detect_drift`` says whether the model watches its own errors, and ``half_life`` after how many rows what was learned
# counts half.

models = {
    "default": labelrace.LabelRaceClassifier(random_state=0),
    "no detection": labelrace.LabelRaceClassifier(detect_drift=False, random_state=0),
    "no detection, no forgetting": labelrace.LabelRaceClassifier(
        detect_drift=False, half_life=None, random_state=0
    ),
}
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for name, model in models.items():
    checkpoints = list(prequential(model, stream, 250, ["example_f1"]))
    rows = [checkpoint.end for checkpoint in checkpoints]
    quality = [checkpoint.measures["example_f1"] for checkpoint in checkpoints]
    axes.plot(rows, quality, label=f"{name}: mean {np.mean(quality):.3f}")
    print(f"{name}: {model.n_alarms_:.0f} alarms, {model.n_drifts_:.0f} confirmed")

axes.axvline(8000, color="gray", linestyle=":", label="the drift")
axes.set(xlabel="rows of the stream", ylabel="F1, mean of a batch", ylim=(0, 1))
axes.legend(loc="lower left")
plt.show()

# %%
# All three fall at the drift, because nobody can foresee it. The default notices, forgets and is soon back; without
# forgetting, the old rows still count as much as the new ones, and the model recovers most slowly.
