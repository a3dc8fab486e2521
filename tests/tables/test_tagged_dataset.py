"""A table with tags as one dataset, to compare models."""

from itertools import pairwise

import numpy as np
import pytest

import labelrace
from labelrace.tables import Tagger, tagged_dataset

SETTINGS = {"text": "body", "batch_size": 500, "max_features": 24}


def tickets():
    """Return tickets whose words are others in every epoch."""
    rng, rows = np.random.default_rng(0), []
    for epoch, n_rows in enumerate([2000, 2000, 1000]):
        for _ in range(n_rows):
            tag = int(rng.integers(4))
            words = [f"e{epoch}w{6 * ((tag + epoch) % 4) + rng.integers(6)}" for _ in range(4)]
            rows.append({"body": " ".join(words), "tags": f"t{tag}"})
    return rows


def test_a_word_that_takes_the_column_of_another_is_another_feature():
    data, features = tagged_dataset(Tagger("tags", **SETTINGS), tickets())
    assert len(features.get_feature_names_out()) == 24
    assert len(set(data.feature_names)) == data.n_features > 48
    words = [{data.feature_names[j] for j in data.X.indices[a:b]} for a, b in pairwise(data.X.indptr)]
    for row, found in zip(tickets(), words, strict=True):
        assert found <= {f"body: {word}" for word in row["body"].split()}


@pytest.mark.parametrize("model", ["race", "arow", "adagrad-logistic"])
def test_models_learn_from_it_what_a_tagger_learns(model):
    rows = tickets()
    data, features = tagged_dataset(Tagger("tags", **SETTINGS), rows)
    tagger = Tagger("tags", model=model, random_state=0, **SETTINGS).partial_fit(rows)
    learner = labelrace.make_model(model, random_state=0)
    for X, Y in data.batches(500):
        learner.partial_fit(X, Y)
    # The last words have the last columns.
    names = features.get_feature_names_out().tolist()
    last = {name: column for column, name in enumerate(data.feature_names)}
    X = features.transform([{"body": row["body"]} for row in rows[-200:]]).toarray()
    wide = np.zeros((200, data.n_features))
    wide[:, [last[name] for name in names]] = X
    chosen = [{data.label_names[j] for j in np.flatnonzero(row)} for row in learner.predict(wide).toarray()]
    agreed = np.mean([one == other for one, other in zip(chosen, tagger.predict(rows[-200:]), strict=True)])
    assert agreed > 0.98, agreed
