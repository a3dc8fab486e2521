"""Tables that nobody has asked for: a result, or one sentence of ours."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelrace import Tagger
from labelrace.exceptions import LabelraceError
from labelrace.tables import TableFeatures, file_tables

CELLS = st.one_of(
    st.none(),
    st.text(max_size=30),
    st.sampled_from(["", "nan", "true", "2024-01-01", "1e400", "-0", "<p>oven</p>", "a;b", "[1, 2]", "\ud800", "\x00"]),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.lists(st.text(max_size=5), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.binary(max_size=5),
)
TAGS = st.one_of(st.none(), st.text(max_size=10), st.lists(st.sampled_from(["oven", "egg", "a b", ""]), max_size=3))
FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def tables():
    names = st.lists(st.text(max_size=6).filter(lambda name: name != "tags"), min_size=1, max_size=4, unique=True)
    return names.flatmap(
        lambda columns: st.lists(st.fixed_dictionaries(dict.fromkeys(columns, CELLS)), min_size=1, max_size=8)
    )


def in_one_sentence(error):
    text = str(error)
    assert "\n" not in text
    assert text.endswith((".", "!")) or isinstance(error, LabelraceError), text


@FEW
@given(tables(), tables())
def test_any_cells_become_a_finite_matrix_or_an_error(first, second):
    features = TableFeatures(min_rows=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rows in (first, second, first):
            try:
                X = features.partial_fit_transform(rows)
            except ValueError as error:
                in_one_sentence(error)
                continue
            assert X.shape == (len(rows), max(1, len(features.state.vocabulary.names)))
            assert np.isfinite(X.data).all()
            assert len(features.get_feature_names_out()) == X.shape[1]


@FEW
@given(tables(), st.data())
def test_any_table_is_learned_and_saved_or_refused(rows, data):
    tagged = [{**row, "tags": data.draw(TAGS)} for row in rows]
    tagger = Tagger(tags="tags", min_rows=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tagger.partial_fit(tagged)
        except ValueError as error:
            in_one_sentence(error)
            assert not tagger.is_fitted
            return
        if tagger.is_fitted:
            assert len(tagger.predict(rows)) == len(rows)
            assert all(name.strip() == name != "" for name in tagger.tags_)


@FEW
@given(st.lists(st.lists(st.text(max_size=12), min_size=2, max_size=3), max_size=6), st.text(max_size=20))
def test_any_file_is_read_or_refused(tmp_path_factory, rows, garbage):
    text = io.StringIO()
    csv.writer(text).writerows([["a", "tags"], *rows])
    path = tmp_path_factory.mktemp("files") / "a.csv"
    path.write_bytes((text.getvalue() + garbage).encode("utf-8", "surrogatepass"))
    try:
        tables = list(file_tables(path, 3))
    except ValueError as error:
        in_one_sentence(error)
        return
    assert all(set(table.columns) == {"a", "tags"} for table in tables)


@pytest.mark.parametrize("content", ["a,a,tags\n1,2,x\n", 'a,tags\n"1,x\n', "a,tags\n1\n", "", "a,tags\n\x81\x8d,x\n"])
def test_broken_files_are_told_in_a_sentence(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(LabelraceError) as error:
        Tagger(tags="tags").fit(tmp_path / "a.csv")
    assert "a.csv" in str(error.value)
    assert "\n" not in str(error.value)


def test_ten_thousand_columns():
    rng = np.random.default_rng(0)
    rows = [
        {f"c{i}": float(x) for i, x in enumerate(rng.normal(size=10_000))} | {"tags": "a" if k % 2 else "b"}
        for k in range(6)
    ]
    tagger = Tagger(tags="tags", random_state=0).fit(rows)
    assert len(tagger.columns_) == 10_000
    assert len(tagger.predict(rows)) == 6


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not tell the peak of memory")
def test_memory_stays_flat_over_a_file_ten_times_larger_than_what_it_takes(tmp_path):
    path = tmp_path / "large.csv"
    line = ",".join([" ".join(f"word{i}" for i in range(3000)), "oven egg"]) + "\n"
    with path.open("w") as file:
        file.write("body,tags\n")
        for _ in range(25):
            file.write(line * 60)
    # A process of its own, as the peak is that of the whole process; what it takes must not depend on how far it is.
    script = (
        "import sys; from labelrace.evaluation.checkpoint import peak_resident\n"
        "from labelrace.tables import file_tables\n"
        "peaks = [(peak_resident(), table.n_rows) for table in file_tables(sys.argv[1], 20)]\n"
        "print(len(peaks), peaks[-1][0] - peaks[10][0])"
    )
    told = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True).stdout
    n_tables, growth = map(int, told.split())
    assert n_tables == 75
    assert growth < path.stat().st_size / 10


def test_a_cell_of_fifty_megabytes():
    rows = [{"body": "oven " * 10_000_000, "tags": "oven"}, {"body": "egg", "tags": "egg"}]
    tagger = Tagger(tags="tags", min_rows=1, random_state=0).fit(rows)
    assert "body: oven" in tagger.explain({"body": "oven"}, tags=["oven"])["oven"][0]
