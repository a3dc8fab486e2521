"""
Embeddings beside words
=======================

Words say nothing to a model that has never seen them; an embedding knows which words mean the like. Here each of six
tags has 300 words of its own, and ``encode`` stands for an embedding model: any function from a list of texts to an
array. It gives words of the same tag similar vectors, but not the same ones, and a text the mean of those of its words.
We compare words alone, vectors alone, and both, while rows come.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelrace
from labelrace.measures import evaluate

rng = np.random.default_rng(0)
tag_of = {f"w{tag}x{word}": tag for tag in range(6) for word in range(300)}
directions = rng.normal(size=(6, 16))
vectors = {word: directions[tag] + rng.normal(size=16) for word, tag in tag_of.items()}


def make_row():
    """Draw a text of one or two tags: two words for each, and a word of any tag."""
    tags = rng.choice(6, rng.integers(1, 3), replace=False)
    words = [f"w{tag}x{rng.integers(300)}" for tag in tags for _ in range(2)]
    body = rng.permutation([*words, rng.choice(list(tag_of))])
    return {"body": " ".join(body), "tags": [f"tag {tag}" for tag in tags]}


def encode(texts):
    """Return the mean vector of the words of each text."""
    words = ([vectors[word] for word in text.split()] for text in texts)
    return np.array([np.mean(one, axis=0) for one in words])


# %%
# Each batch is predicted, and then learned.

rows = [make_row() for _ in range(3000)]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
both = {"encoders": {"body": encode}}
alone = both | {"encoders_only": True}
for name, given in ("words", {}), ("vectors", alone), ("words and vectors", both):
    tagger = labelrace.Tagger("tags", text="body", random_state=0, **given)
    tagger, quality = tagger.partial_fit(rows[:100]), []
    for start in range(100, 3000, 100):
        batch = rows[start : start + 100]
        true = [set(row["tags"]) for row in batch]
        quality.append(evaluate(true, tagger.predict(batch))["example_f1"])
        tagger.partial_fit(batch)
    axes.plot(range(200, 3001, 100), quality, label=name)
axes.set(xlabel="rows learned", ylabel="F1 of a row, mean of a batch", ylim=(0, 1))
axes.legend(loc="lower right")
plt.show()

# %%
# Vectors are good from the first rows on, as a new word is near to known ones; words have to be seen first, and catch
# up. Both together are about as good as vectors at the start, and later mostly better than either alone.
