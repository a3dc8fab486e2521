"""The tagger on real tables: what its first rows, its names of tags and a precision that is asked for lead to."""

from __future__ import annotations

import numpy as np
import pytest

import labelrace

ROWS = 15_404


def test_questions_about_cooking(real_data):
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(real_data("cooking", ".csv.gz"), keep_default_na=False)
    truth = [set(tags.split()) for tags in table["tags"]]
    tagger, f1, sure = labelrace.Tagger("tags", random_state=0), np.full(ROWS, np.nan), np.zeros((ROWS, 2))
    for start in range(0, ROWS, 500):
        batch = table.iloc[start : start + 500]
        if start:
            for row, found in enumerate(tagger.predict(batch), start):
                f1[row] = 2 * len(found & truth[row]) / (len(found) + len(truth[row]))
            for row, found in enumerate(tagger.set_params(precision=0.9).predict(batch), start):
                sure[row] = len(found & truth[row]), len(found)
        tagger.set_params(precision=None).partial_fit(batch)
    assert np.nanmean(f1) > 0.56
    assert f1[500:1000].mean() > 0.46
    assert f1[1000:2500].mean() > 0.56
    n_right, n_given = sure[-ROWS // 4 :].sum(axis=0)
    assert n_given > 400
    assert 0.88 < n_right / n_given < 0.92
    handled = sure[-ROWS // 4 :, 1] > 0
    assert handled.mean() > 0.1


@pytest.mark.parametrize("size", [50, 100, 500])
def test_mails_of_enron(real_data, size):
    """The words of each mail as a text; few mails are as sure as 0.9, whatever the size of batches."""
    data = labelrace.load_dataset(real_data("enron"))
    texts = [" ".join(np.array(data.feature_names)[row.indices]) for row in data.X]
    tags = [[data.label_names[label] for label in row.indices] for row in data.Y]
    rows = [{"body": text, "tags": names} for text, names in zip(texts, tags, strict=True)]
    tagger, given = labelrace.Tagger("tags", random_state=0), {0.7: [], 0.8: [], 0.9: []}
    for start in range(0, len(rows), size):
        batch, first = rows[start : start + size], max(0, 3 * len(rows) // 4 - start)
        if first < len(batch):
            for precision, right in given.items():
                predicted = tagger.set_params(precision=precision).predict(batch)
                for row, found in list(zip(batch, predicted, strict=True))[first:]:
                    right += [tag in row["tags"] for tag in found]
        tagger.set_params(precision=None).partial_fit(batch)
    assert 0.68 < np.mean(given[0.7]) < 0.78
    assert 0.78 < np.mean(given[0.8]) < 0.9
    assert np.mean(given[0.9]) > 0.88
    assert len(given[0.9]) > 5
