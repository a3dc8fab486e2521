"""The command with an embedding model."""

from __future__ import annotations

import json
import shutil

import numpy as np
from helpers.embedding import make_folder, vectors

TOPICS = {"oven": "oven hot door", "bill": "invoice pay money"}


def write(path, n, seed=0):
    rng, lines = np.random.default_rng(seed), []
    for number in range(n):
        tag = str(rng.choice(list(TOPICS)))
        title = f"my {' '.join(rng.choice(TOPICS[tag].split(), 2))} please"
        lines.append(json.dumps({"nr": f"T-{number}", "title": title, "tags": [tag]}))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_command_trains_with_an_embedding_and_asks_for_it_again(tmp_path, works, refuses):
    folder = make_folder(tmp_path / "model", vectors())
    rows, new, tagger = write(tmp_path / "a.jsonl", 300), write(tmp_path / "b.jsonl", 20, 1), tmp_path / "t.labelrace"
    out = works("train", rows, "--tags", "tags", "--embed", "title=model", "-o", tagger)
    assert "text, with its encoder" in out
    expected = works("predict", tagger, new)
    assert len(expected.splitlines()) == 20
    shutil.move(folder, tmp_path / "moved")
    assert "--embed title=FOLDER" in refuses("predict", tagger, new)
    moved = ("--embed", "title=moved")
    assert works("predict", tagger, new, *moved) == expected
    kinds = json.loads(works("inspect", tagger, *moved, "--json"))["columns"]
    assert kinds["title"] == "text, with its encoder"
    (tmp_path / "row.json").write_text(json.dumps({"title": "my hot oven"}))
    assert "title" in works("explain", tagger, tmp_path / "row.json", *moved)
    assert json.loads(works("test", tagger, rows, *moved, "--json"))["rows"] == 300
    assert "oven" in works("tags", "list", tagger, *moved)
    works("tags", "rename", tagger, "bill", "money", *moved, "-o", tmp_path / "renamed.labelrace")
    works("update", tagger, write(tmp_path / "c.jsonl", 30, 2), *moved)
    # The folder that was given last is noted.
    works("predict", tagger, new)
    make_folder(tmp_path / "other", vectors(5))
    assert "another embedding model" in refuses("predict", tagger, new, "--embed", "title=other")
    assert "--embed must be COLUMN=DIR" in refuses("predict", tagger, new, "--embed", "title")
    assert "need --tags" in refuses("train", rows, "--embed", "title=model", "-o", tagger)
