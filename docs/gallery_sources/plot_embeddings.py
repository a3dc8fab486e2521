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

rng = np.random.default_rng(0)
TAGS = ["billing", "login", "shipping", "returns", "network", "search"]
tag_of = {f"w{tag}x{word}": tag for tag in range(6) for word in range(300)}
directions = rng.normal(size=(6, 16))
vectors = {word: directions[tag] + rng.normal(size=16) for word, tag in tag_of.items()}
words_of = [[word for word, one in tag_of.items() if one == tag] for tag in range(6)]


def make_row():
    """Draw a text of one or two tags, two words for each, with a further word, of any tag, among them."""
    tags = rng.choice(6, rng.integers(1, 3), replace=False)
    words = [rng.choice(words_of[tag]) for tag in tags for _ in range(2)] + [rng.choice(list(tag_of))]
    return {"body": " ".join(rng.permutation(words)), "tags": [TAGS[tag] for tag in tags]}


def encode(texts):
    """Return the mean vector of the words of each text."""
    return np.array([np.mean([vectors[word] for word in text.split()], axis=0) for text in texts])


rows = [make_row() for _ in range(3000)]

# %%
# Each batch is predicted, and then learned.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
settings = {"encoders": {"body": encode}}
for name, given in {"words": {}, "vectors": settings | {"encoders_only": True}, "words and vectors": settings}.items():
    tagger = labelrace.Tagger(tags="tags", text="body", random_state=0, **given).partial_fit(rows[:100])
    ends, quality = [], []
    for start in range(100, 3000, 100):
        batch = rows[start : start + 100]
        pairs = [(set(row["tags"]), tags) for row, tags in zip(batch, tagger.predict(batch), strict=True)]
        quality.append(np.mean([2 * len(true & tags) / max(len(true) + len(tags), 1) for true, tags in pairs]))
        ends.append(start + 100)
        tagger.partial_fit(batch)
    axes.plot(ends, quality, label=name)
axes.set(xlabel="rows learned", ylabel="F1 of a row's tags, mean of a batch", ylim=(0, 1))
axes.legend(loc="lower right")
plt.show()

# %%
# Vectors are good from the first rows on, as a new word is near to known ones; words have to be seen first, and catch
# up. Both together are about as good as vectors at the start, and later mostly better than either alone.
