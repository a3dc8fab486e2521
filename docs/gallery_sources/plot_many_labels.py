"""
Very many labels and memory
===========================

A linear model for each label takes four bytes for each label and each feature. Where that is more than ``max_memory``,
the default compresses the labels: it learns a few pseudo labels, and decodes them. Here it learns 2,000 labels of 1,500
sparse features with less and less memory. Each batch is ranked before it is learned; nDCG@5 is 1 where the first five
labels of every row are the best possible ones. The most frequent labels, the same for all rows, are the yardstick.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import labelrace
from labelrace.evaluation import prequential
from labelrace.streams.synthetic import SyntheticStream

stream = SyntheticStream(
    n_rows=4000, n_features=1500, n_labels=2000, density=0.02, cardinality=5.0, seed=6
)


def mean_quality(model):
    """Predict and learn the stream; return the mean quality of its second half."""
    found = list(prequential(model, stream, 500, ["ndcg_at_5"]))[3:]
    return np.mean([one.measures["ndcg_at_5"] for one in found])


# %%
# The size of a model is that of its file. ``n_components_`` is the number of pseudo labels, None without compression.

sizes, qualities, names = [], [], []
with tempfile.TemporaryDirectory() as folder:
    for budget in ("1GB", "6MB", "2MB", "0.75MB"):
        model = labelrace.LabelRaceClassifier(max_memory=budget, random_state=0)
        qualities.append(mean_quality(model))
        model.save(path := Path(folder, "model.safetensors"))
        sizes.append(path.stat().st_size / 1e6)
        k = model.n_components_
        names.append(f"{k} pseudo\nlabels" if k else "not\ncompressed")
        print(f"{budget}: {k} pseudo labels, {sizes[-1]:.1f} MB, {qualities[-1]:.3f}")

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(sizes, qualities, marker="o", label="default, with less and less memory")
for size, quality, name in zip(sizes, qualities, names, strict=True):
    axes.text(size, quality + 0.02, name, ha="center")
base = mean_quality(labelrace.make_model("majority"))
axes.axhline(base, color="gray", linestyle=":", label="most frequent labels")
axes.set(xlabel="MB", ylabel="nDCG@5", xscale="log", xlim=(0.5, 30), ylim=(0, 1))
axes.legend(loc="lower right")
plt.show()

# %%
# These labels are correlated, as labels mostly are, so compression costs little: with less than a tenth of the memory,
# the model is nearly as good as the one that has weights of its own for each label.
