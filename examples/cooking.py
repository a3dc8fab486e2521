"""A walk through 15,404 questions about cooking, with 736 tags, in the order in which they were asked.

Get ``cooking.csv.gz`` (columns id, title, content, tags) and run ``python examples/cooking.py cooking.csv.gz``.
A second argument bounds the number of rows.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import islice
from pathlib import Path

import labelrace
from labelrace.tables import file_tables


def walk(path: Path, n_rows: int = 15_404) -> labelrace.Tagger:
    """Tag each batch before it is learned, then do with the tagger what people do with tags."""
    tagger = labelrace.Tagger(tags="tags", random_state=0)
    for table in islice(file_tables(path, 500), max(1, n_rows // 500)):
        tagger.prequential_fit(table)
    for column in tagger.columns_:
        print(f"{column.name} is read as: {column}")
    print(f"{tagger.n_rows_} questions with {len(tagger.tags_)} tags, separated by {tagger.separator_!r}")
    print("Tagged before they were learned, with an example F1 of {example_f1:.3f}".format(**tagger.quality_))

    question = {"title": "How do I poach an egg?", "content": "<p>Mine always break in the water.</p>"}
    print("Most likely:", ", ".join(f"{tag} ({likely:.0%})" for tag, likely in tagger.predict_top([question], 3)[0]))
    for tag, parts in tagger.explain(question).items():
        print(f"{tag}, because of:", ", ".join(name for name, amount in parts[:3] if amount > 0))

    # Tags change: two become one, one gets another name, one is given up.
    tagger.merge_labels(["storage-lifetime", "storage-method"], into="storage")
    tagger.rename_labels({"eggs": "egg"})
    tagger.drop_labels(["please-remove-this-tag"])
    print("Now:", ", ".join(sorted(tag for tag in tagger.tags_ if tag in ("egg", "storage"))))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cooking.labelrace")
        tagger.save(file)
        again = labelrace.load(file)
        print(f"Saved in {file.stat().st_size / 1e6:.0f} MB; loaded, it says", again.predict([question])[0])
    return tagger


if __name__ == "__main__":
    walk(Path(sys.argv[1]), *map(int, sys.argv[2:3]))
