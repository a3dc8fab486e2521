"""
Choosing what to label
======================

Labelling takes people's time: which rows should they look at? ``usefulness`` is high where the suggested tags are
expected to be wrong, by the tagger's own probabilities. We let people label 50 rows of a pool at a time, random ones or
the most useful ones, and measure the tagger on other rows. In the texts on the left each word belongs to a tag, and
many words and tags are rare. On the right, many tickets have words of tags that are not theirs.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelrace
from labelrace.decisions.usefulness import usefulness
from labelrace.measures import evaluate
from labelrace.streams.demo import demo_tickets

rng = np.random.default_rng(0)
often = [1 / np.arange(1, n + 1) / sum(1 / np.arange(1, n + 1)) for n in (30, 40)]


def make_text():
    """Draw one of 30 tags or two, and three of the 40 words of each."""
    tags = rng.choice(30, rng.integers(1, 3), replace=False, p=often[0])
    words = [f"w{tag}x{word}" for tag in tags for word in rng.choice(40, 3, p=often[1])]
    return {"body": " ".join(words), "tags": [f"tag {tag}" for tag in tags]}


def run(rows, useful):
    """Label 50 rows at a time; return the quality after each step."""
    pool, test, quality = rows[100:1500], rows[1500:], []
    true = [set(row["tags"]) for row in test]
    tagger = labelrace.Tagger("tags", text="body", random_state=0).fit(rows[:100])
    for _ in range(11):
        quality.append(evaluate(true, tagger.predict(test))["example_f1"])
        order = np.arange(len(pool))  # the rows are in random order
        if useful:
            both = zip(tagger.predict_top(pool, 30), tagger.predict(pool), strict=True)
            order = np.argsort([-usefulness(dict(p), tags) for p, tags in both])
        pool = [pool[row] for row in order]
        tagger, pool = tagger.partial_fit(pool[:50]), pool[50:]
    return quality


data = {"texts of rare words": [make_text() for _ in range(2000)]}
data["noisy tickets"] = demo_tickets(8000, seed=1)[6000:]
figure, both = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
for axes, (title, rows) in zip(both, data.items(), strict=True):
    for name, useful in (("random rows", False), ("most useful rows", True)):
        axes.plot(range(100, 601, 50), run(rows, useful), marker="o", label=name)
    axes.set(title=title, xlabel="labelled rows", ylabel="F1", ylim=(0.4, 1.02))
    axes.legend(loc="lower right")
plt.show()

# %%
# On the left, 400 useful rows teach as much as 600 random ones. On the right, random rows are as good or better: what
# the tagger doubts there are tickets with misleading words, which teach little. So try it on tagged rows of your own.
