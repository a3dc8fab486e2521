"""How the labels among the attributes are told."""

import numpy as np
import pytest

from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset

ATTRIBUTES = ["a {0,1}", "b {0,1}", "c {0,1}", "d {0,1}"]
XML = '<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">{}</labels>'


@pytest.fixture
def path(arff):
    return arff(ATTRIBUTES, ["0,1,0,1"])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (1, "d"),
        (3, "bcd"),
        (-1, "a"),
        (-2, "ab"),
        (np.int64(2), "cd"),
        (np.array(["b"]), "b"),
        (["c"], "c"),
        (("d", "a"), "ad"),
    ],
)
def test_counts_and_names(path, labels, expected):
    data = load_dataset(path, labels)
    assert "".join(data.label_names) == expected
    assert "".join(data.feature_names) == "".join(sorted(set("abcd") - set(expected)))


def test_xml_beside_the_file(path):
    # Nested labels count, and the order is that of the attributes.
    text = XML.format('<label name="d"><label name="b"></label></label>')
    path.with_suffix(".xml").write_text(text)
    data = load_dataset(path)
    assert data.label_names == ("b", "d")
    assert data.Y.toarray().tolist() == [[1, 1]]


def test_xml_elsewhere_without_namespace(path, tmp_path):
    other = tmp_path / "other.xml"
    other.write_text('<labels><label name="a"/></labels>')
    assert load_dataset(path, other).label_names == ("a",)
    assert load_dataset(path, str(other)).label_names == ("a",)


@pytest.mark.parametrize(
    ("relation", "expected"),
    [("'Music: -C 2'", "ab"), ("'Music: -C -1 -split 50'", "d"), ('"x:-C 3"', "abc"), ("-C 1", "a")],
)
def test_meka_option(arff, relation, expected):
    assert "".join(load_dataset(arff(ATTRIBUTES, [], relation)).label_names) == expected


def test_xml_comes_before_the_meka_option(arff):
    path = arff(ATTRIBUTES, [], "'x: -C 2'")
    path.with_suffix(".xml").write_text(XML.format('<label name="d"/>'))
    assert load_dataset(path).label_names == ("d",)


def test_no_way_to_tell(path):
    with pytest.raises(DataFormatError, match=r"test\.arff: cannot tell .* no test\.xml .*give labels="):
        load_dataset(path)


@pytest.mark.parametrize("labels", [0, 5, -5])
def test_count_out_of_range(path, labels):
    with pytest.raises(DataFormatError, match=rf"test\.arff: labels={labels} does not fit.* 4 columns"):
        load_dataset(path, labels)


@pytest.mark.parametrize("labels", [4, -4, list("abcd")])
def test_no_feature_left(path, labels):
    with pytest.raises(DataFormatError, match="none is left as a feature"):
        load_dataset(path, labels)


def test_empty_list(path):
    data = load_dataset(path, [])
    assert data.Y.shape == (len(data), 0)
    assert data.n_features == load_dataset(path, 1).n_features + 1


def test_unknown_names_are_listed(path):
    with pytest.raises(DataFormatError, match=r"7 of the labels .*'r', 's', 't', 'u', 'v' and 2 more"):
        load_dataset(path, ["a", *"rstuvwx"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (XML.format('<label name="a"/><label name="q"/>'), r"1 of the labels in .*test\.xml .*: 'q'"),
        (XML.format(""), r"test\.xml: there is no <label> element"),
        (XML.format('<label name="a"/><label/>'), r"test\.xml: <label> element 2 has no name"),
        ('<labels>\n<label name="a">\n</labels>', r"test\.xml, line 3: not a valid XML file"),
        ("<labels>" + "<label name='l'>" * 20_000, r"test\.xml.*not a valid XML file"),
        ("<?xml version='1.0' encoding='odd'?><l/>", r"test\.xml.*not a valid XML file"),
    ],
)
def test_label_files_that_cannot_be_used(path, text, message):
    path.with_suffix(".xml").write_text(text)
    with pytest.raises(DataFormatError, match=message):
        load_dataset(path)


def test_missing_xml(path):
    with pytest.raises(FileNotFoundError, match=r"no such label file: nowhere\.xml .*give a list"):
        load_dataset(path, "nowhere.xml")


@pytest.mark.parametrize("values", ["{0,1,2}", "{false,true}", "{0}"])
def test_label_must_be_binary(arff, values):
    with pytest.raises(DataFormatError, match=r"line 3: label 'y' must be numeric or declare \{0,1\}"):
        load_dataset(arff(["a numeric", f"y {values}"], []), 1)
