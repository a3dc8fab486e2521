"""Random files: as liac-arff reads them, and the same by both of our parsers."""

import re

import arff as liac
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labelrace.exceptions import DataFormatError
from labelrace.streams import arff, load_dataset

NUMBERS = st.one_of(
    st.integers(-(10**17), 10**17).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1000, 1000, places=6).map(str),
    st.sampled_from(["0", "-0.0", "1.", ".5", "+3", "1E5", "007", "123456789012345", "0.1234567890123456789"]),
)
VALUES = st.lists(st.text("ab01 ,{}é%_", min_size=1, max_size=4), min_size=1, max_size=4, unique_by=str.strip).map(
    lambda values: [value.strip() or "x" for value in values]
)
DOMAINS = st.one_of(st.none(), st.just(["0", "1"]), VALUES)


def quoted(value):
    return f"'{value}'" if re.search(r"[ ,{}%]", value) else value


@st.composite
def tables(draw):
    """Draw domains (None is numeric; the last two are labels) and rows of texts, None where missing."""
    labels = [None, ["0", "1"], ["1", "0"]]
    domains = draw(st.lists(DOMAINS, min_size=1, max_size=5)) + draw(
        st.lists(st.sampled_from(labels), min_size=2, max_size=2)
    )
    cells = [NUMBERS if domain is None else st.sampled_from(domain) for domain in domains]
    missing = st.none() if draw(st.booleans()) else st.nothing()
    cells = [cell | missing for cell in cells[:-2]] + [st.sampled_from("01")] * 2
    return domains, draw(st.lists(st.tuples(*cells), min_size=1, max_size=6))


def write(path, domains, rows):
    types = ["numeric" if domain is None else "{" + ",".join(map(quoted, domain)) + "}" for domain in domains]
    header = [f"@attribute 'a {{{i}}}' {kind}" for i, kind in enumerate(types)]
    path.write_text("\n".join(["@relation r", *header, "@data", *rows, ""]), encoding="utf-8")


def text_of(cell):
    return "?" if cell is None else quoted(cell)


def load_with_liac(path, kind):
    with path.open(encoding="utf-8") as file:
        return liac.load(file, return_type=kind)["data"]


def encode(cell, domain):
    if cell is None:
        return np.nan
    return cell if domain is None else domain.index(cell)


def check_against(data, expected, domains):
    """Compare with the cells that liac-arff read."""
    numbers = np.array([[encode(cell, domain) for cell, domain in zip(row, domains, strict=True)] for row in expected])
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    np.testing.assert_array_equal(X, numbers[:, :-2])
    positive = [[row[-2] in (1, "1"), row[-1] in (1, "1")] for row in expected]
    np.testing.assert_array_equal(data.Y.toarray(), positive)
    assert data.categorical.n_values.tolist() == [len(domain or ()) for domain in domains[:-2]]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("random") / "random.arff"


@given(table=tables())
@settings(max_examples=150, deadline=None)
def test_dense_as_liac_arff(path, table):
    domains, rows = table
    write(path, domains, [",".join(map(text_of, row)) for row in rows])
    check_against(load_dataset(path, 2), load_with_liac(path, liac.DENSE), domains)


@given(table=tables(), data=st.data())
@settings(max_examples=150, deadline=None)
def test_sparse_as_liac_arff(path, table, data):
    domains, rows = table
    kept = [sorted(data.draw(st.sets(st.integers(0, len(domains) - 1)))) for _ in rows]
    separator = data.draw(st.sampled_from([",", ", ", " , "]))
    texts = [[f"{i} {text_of(row[i])}" for i in indices] for row, indices in zip(rows, kept, strict=True)]
    write(path, domains, ["{" + separator.join(text) + "}" for text in texts])
    zeros = [0 if domain is None else domain[0] for domain in domains]
    read = load_with_liac(path, liac.LOD)
    check_against(load_dataset(path, 2), [[row.get(i, zero) for i, zero in enumerate(zeros)] for row in read], domains)


DOMAINS_OF = [None, ["0", "1"], ["1", "0"], ["x", "0", "'?'", "10"], ["0", "1"], None]
TOKEN = st.one_of(NUMBERS, st.sampled_from(["0", "1", "x", "10", "?", "nan", "1_0", "'1'", "", " ", "é"]))
PLAIN_TOKEN = st.sampled_from("01")


def outcome(path):
    """Load a file with two labels; return its numbers, with the signs of zeros, or its error."""
    try:
        data = load_dataset(path, 2)
    except DataFormatError as error:
        return str(error)
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    return [list(map(repr, row)) for row in X.tolist()], data.Y.toarray().tolist()


def same_by_both(path, lines):
    """Check that rows are read alike in bulk and one by one, or refused with the same error."""
    write(path, DOMAINS_OF, lines)
    fast = outcome(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arff, "parse_dense", lambda *_: None)
        patch.setattr(arff, "parse_sparse", lambda *_: None)
        assert outcome(path) == fast


@given(lines=st.lists(st.lists(PLAIN_TOKEN | TOKEN, min_size=5, max_size=7).map(",".join), min_size=1, max_size=4))
@example(lines=["-0.0,0,1,x,0,1.0", "123456789.123456,1,0,0,1,0"])
@example(lines=["1,0,0,?,0,1"])
@example(lines=["1,0,0,0,0", "0,0,0,0,0,0,0"])
@settings(max_examples=300, deadline=None)
def test_both_parsers_agree_on_dense_rows(path, lines):
    same_by_both(path, lines)


ENTRY = st.tuples(st.integers(0, 6).map(str) | TOKEN, PLAIN_TOKEN | TOKEN).map(" ".join)
SPARSE_ROW = st.one_of(
    st.lists(ENTRY, max_size=4).map(lambda entries: "{" + ",".join(entries) + "}"),
    st.text("{} ,01x.-\t", max_size=12),
)


@given(lines=st.lists(SPARSE_ROW, min_size=1, max_size=3))
@example(lines=["{0 -1.50,1 1, 5 1}", "{}", "{4 1}"])
@example(lines=["{1 1,0 1}"])
@example(lines=["{,2 3,4 5}"])
@example(lines=["{1 }1"])
@settings(max_examples=300, deadline=None)
def test_both_parsers_agree_on_sparse_rows(path, lines):
    same_by_both(path, lines)


@pytest.fixture
def only_bulk(monkeypatch):
    """Refuse rows that are not read in bulk."""
    for name in ("parse_dense_row", "parse_sparse_row"):
        monkeypatch.setattr(arff, name, lambda *_: pytest.fail("a row was parsed alone"))


@given(number=NUMBERS)
@settings(max_examples=200, deadline=None)
def test_numbers_are_read_to_the_last_bit(path, number):
    write(path, DOMAINS_OF, [f"{number},0,1,x,0,1"])
    assert load_dataset(path, 2).X[0, 0].hex() == float(number).hex()


def test_fractions_of_any_length_are_read_to_the_last_bit(path, only_bulk):
    random = np.random.default_rng(0)
    numbers = [f"{x:.{random.integers(1, 19)}f}" for x in random.normal(scale=100, size=3000)]
    write(path, DOMAINS_OF, [f"{number},0,1,x,0,1" for number in numbers])
    assert load_dataset(path, 2).X[:, 0].tolist() == list(map(float, numbers))


DENSE = ["1.5,1,0,x,0,1", "-2e3,0,1,0,1,0", "?,?,0,10,1,1"]


@pytest.mark.parametrize(
    "rows",
    [
        DENSE,
        [row.replace(",", ", ") for row in DENSE],
        ["1,'1',0,'?',0,1", "'2.5',?,1,x,'0',0"],
        ["{0 1.5,1 1,3 x}", "{}", "{2 0, 5 1}"],
    ],
)
def test_plain_rows_are_read_in_bulk(path, only_bulk, rows):
    write(path, DOMAINS_OF, rows)
    assert len(load_dataset(path, 2)) == len(rows)
