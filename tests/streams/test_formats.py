"""Datasets by name and by path."""

import os
from pathlib import Path

import pytest

from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset
from labelrace.streams.catalog import data_folders, find_dataset

TEXT = "@relation t\n@attribute a numeric\n@attribute b {0,1}\n@data\n1,1\n"
XML = '<labels><label name="b"/></labels>'


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Make two data folders and a cache, with a dataset in each but the first."""
    one, two, cache = tmp_path / "one", tmp_path / "two", tmp_path / "cache" / "labelrace"
    for folder in (one, two, cache):
        folder.mkdir(parents=True)
    for folder, name in ((two, "Music"), (cache, "news")):
        (folder / f"{name}.arff").write_text(TEXT)
        (folder / f"{name}.xml").write_text(XML)
    monkeypatch.setenv("LABELRACE_DATA", os.pathsep.join([str(one), "", str(two)]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return one, two, cache


def test_folders_in_order(folders):
    assert data_folders() == list(folders)


@pytest.mark.parametrize("name", ["Music", "music", "MUSIC"])
def test_case_does_not_matter(folders, name):
    assert find_dataset(name) == folders[1] / "Music.arff"
    assert load_dataset(name).label_names == ("b",)


def test_cache_comes_last(folders):
    assert find_dataset("news").parent == folders[2]
    (folders[0] / "NEWS.arff").write_text(TEXT)
    assert find_dataset("news").parent == folders[0]


def test_exact_case_is_preferred(folders):
    (folders[1] / "MUSIC.arff").write_text(TEXT)
    if len(list(folders[1].glob("*.arff"))) < 2:
        pytest.skip("the file system does not tell upper from lower case")
    assert find_dataset("Music").name == "Music.arff"
    assert find_dataset("MUSIC").name == "MUSIC.arff"


def test_unknown_name_says_where_it_looked(folders):
    with pytest.raises(FileNotFoundError, match=r"no dataset named 'nonsense'.*found Music, news.*LABELRACE_DATA") as e:
        load_dataset("nonsense")
    assert all(str(folder) in str(e.value) for folder in folders)


def test_nothing_to_be_found(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELRACE_DATA", str(tmp_path / "absent"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="found no datasets"):
        find_dataset("music")


def test_paths(folders):
    path = folders[1] / "Music.arff"
    assert load_dataset(path).name == "Music"
    assert load_dataset(str(path), labels=["b"]).name == "Music"
    assert load_dataset(os.path.join("two", "Music.arff"), labels=1).label_names == ("b",)


def test_folder_with_the_name_of_a_dataset(folders):
    Path("music").mkdir()
    assert load_dataset("music").name == "Music"


def test_name_with_a_dot(folders):
    (folders[0] / "rcv1.subset1.arff").write_text(TEXT)
    assert load_dataset("rcv1.subset1", labels=1).name == "rcv1.subset1"


@pytest.mark.parametrize("source", ["absent.arff", Path("absent"), "two/absent"])
def test_missing_file(folders, source):
    with pytest.raises(FileNotFoundError, match=r"no such data file: .*absent"):
        load_dataset(source)


def test_unknown_type(folders):
    Path("data.doc").write_text(TEXT)
    with pytest.raises(DataFormatError, match=r"data\.doc: cannot read .* of type '\.doc'; known types are \.arff"):
        load_dataset("data.doc")
