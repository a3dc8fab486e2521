"""Names of tags in the texts of rows, against sets of words."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelrace.tables.name_matches import NameIndex, NameIndexes, TextWords, stem
from labelrace.tables.tag_details import TagDetails, f1_with_parents, parent_of, read_details
from labelrace.tables.text import count_words

WORDS = ["oven", "ovens", "iron", "cast", "heat", "bread", "baking", "storage", "method", "methods"]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=5)
names = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("-".join)


def stems_of(text):
    return {stem(word) for word in text.replace("-", " ").split()}


@given(titles=texts, bodies=texts, tags=st.lists(names, unique=True, max_size=6), synonym=names)
def test_a_name_is_found_where_all_its_words_are(titles, bodies, tags, synonym):
    n = min(len(titles), len(bodies))
    details = {tag: TagDetails((synonym,) if i == 0 else ()) for i, tag in enumerate(tags)}
    columns = [TextWords(*count_words(part[:n]), is_short) for part, is_short in ((titles, True), (bodies, False))]
    matches = NameIndexes().extended(details).find(columns)
    found = {(row, tag): tuple(kinds) for row, tag, kinds in zip(*map(np.ndarray.tolist, matches), strict=True)}
    expected = {}
    for row in range(n):
        for number, (tag, one) in enumerate(details.items()):
            kinds = [
                float(any(stems_of(name) <= stems_of(part[row]) for name in (tag, *one.synonyms)))
                for part in (titles, bodies)
            ]
            if any(kinds):
                expected[row, number] = (*kinds, 0.0)
    assert found == expected


def test_further_tags_are_found_as_if_they_had_been_there_from_the_start():
    tags = {" ".join(words): TagDetails() for words in permutations(WORDS, 3)}
    texts = [TextWords(*count_words(["cast iron oven heat", "baking bread"]), True)]
    growing = NameIndexes()
    for end in (20, 25, 300, 330, 333, len(tags)):
        growing = growing.extended(dict(list(tags.items())[:end]))
    for one, other in zip(growing.find(texts), NameIndex(tags).find([texts[0].by_stems()]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert growing.extended(tags) is growing


def test_descriptions_count_by_the_share_of_their_words():
    tags = {"E-17": TagDetails(description="water leaks from the door"), "E-18": TagDetails(description="no power")}
    texts = [TextWords(*count_words(["The door leaks", "power"]), False)]
    rows, numbers, found = NameIndexes().extended(tags).find(texts)
    # One word alone says nothing.
    assert (rows.tolist(), numbers.tolist(), found[:, 2].tolist()) == ([0], [0], [3 / 5])


def test_tags_are_read_from_lists_dicts_and_tables(tmp_path):
    path = tmp_path / "tags.csv"
    path.write_text("tag,synonyms,parent\noven,stove;hot plate,kitchen\nlamp,,\n")
    expected = {"oven": TagDetails(("stove", "hot plate"), "", "kitchen"), "lamp": TagDetails()}
    assert read_details(path) == expected
    assert read_details({"oven": {"synonyms": ["stove", "hot plate"], "parent": "kitchen"}, "lamp": {}}) == expected
    assert read_details(["lamp"]) == {"lamp": TagDetails()}
    with pytest.raises(ValueError, match="columns 'tag'"):
        read_details([{"name": "oven"}])
    with pytest.raises(ValueError, match="row 2"):
        read_details([{"tag": "oven"}, {"tag": None}])


def test_the_parent_of_a_tag_that_was_meant_is_half_right():
    details = {"oven": TagDetails(parent="kitchen")}
    assert parent_of("oven", details) == "kitchen"
    assert f1_with_parents({"oven"}, {"kitchen"}, details) == 0.5
    assert f1_with_parents({"oven", "lamp"}, {"oven", "lamp"}, details) == 1.0
    assert f1_with_parents({"oven", "lamp"}, {"kitchen", "lamp"}, details) == pytest.approx((2 + 2 * 0.5) / 4)
    assert f1_with_parents({"kitchen"}, {"oven"}, details) == 0.0


def test_columns_of_a_table_of_tags_may_be_written_otherwise(tmp_path):
    path = tmp_path / "tags.csv"
    path.write_text("Tag,Synonyms ,owner\noven,stove,Ann\n")
    with pytest.warns(UserWarning, match=r"tags\.csv: Columns that say nothing of tags are left out: 'owner'"):
        assert read_details(str(path))["oven"].synonyms == ("stove",)
    path.write_text("name\noven\n")
    with pytest.raises(ValueError, match=r"tags\.csv: The tags must have the columns 'tag'"):
        read_details(str(path))
