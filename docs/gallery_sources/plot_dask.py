"""
Dask: a model learned by several processes
==========================================

``labelrace.distributed.fit`` cuts the data into rounds, and each round into shares that processes learn side by side;
after each round what they have learned is merged. It runs on this machine or on a Dask cluster. Here two processes
learn 12,000 rows, and we look after every round how good the merged model has become, beside a model that has learned
the same rows one batch after the other.
"""

import matplotlib.pyplot as plt

import labelrace
from labelrace.distributed import fit
from labelrace.measures import evaluate
from labelrace.streams.synthetic import SyntheticStream

stream = SyntheticStream(n_rows=14_000, n_features=40, n_labels=20, seed=9)
batches = list(stream.batches(250))
to_learn, test = batches[:48], batches[48:]


def quality(model):
    """Return F1 on rows that are not learned."""
    found = [evaluate(Y, model.predict(X), measures="example_f1") for X, Y in test]
    return sum(one["example_f1"] for one in found) / len(found)


# %%
# ``on_progress`` is called after every round. In a script, what starts processes belongs behind this ``if``, as each of
# them reads the script once more.

if __name__ == "__main__":
    one_pass, merged = ([], []), ([], [])
    alone = labelrace.LabelRaceClassifier(random_state=0)
    for number, (X, Y) in enumerate(to_learn, 1):
        one_pass[0].append(250 * number)
        one_pass[1].append(quality(alone.partial_fit(X, Y)))

    model = labelrace.LabelRaceClassifier(random_state=0)

    def look(progress):
        """Note how good the model is after a round."""
        merged[0].append(progress.rows)
        merged[1].append(quality(model))

    fit(model, to_learn, workers=2, shares=2, rounds=12, on_progress=look)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(*one_pass, label="one process, batch after batch")
    axes.plot(*merged, marker="o", label="two processes, merged after every round")
    axes.set(xlabel="rows learned", ylabel="F1 on other rows", ylim=(0.7, 0.85))
    axes.legend(loc="lower right")
    plt.show()

# %%
# After each round, the merged model is as good as the one that has learned as many rows one batch after the other.
