"""The catalog, and fetching from a server on this computer."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from labelrace.exceptions import LabelraceError
from labelrace.streams import catalog, load_dataset

DATA, LABELS, MATRIX = b"@relation toy\n" * 20_000, b"<labels/>\n", b"MATLAB" * 9


def git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob " + str(len(content)).encode() + b"\0" + content).hexdigest()


def toy(name: str, *files: tuple[str, str, str]) -> catalog.CatalogEntry:
    remote = tuple(catalog.RemoteFile(local, "http://nowhere.invalid", path, sum_) for local, path, sum_ in files)
    return catalog.CatalogEntry(name, 1, 1, 1, remote, "for tests")


DATA_SUM, LABEL_SUM = (f"sha256:{hashlib.sha256(content).hexdigest()}" for content in (DATA, LABELS))
XML = ("toy.xml", "toy/Toy.xml", LABEL_SUM)
ENTRIES = (
    toy("toy", ("toy.arff", "toy/Toy-sparse.arff", DATA_SUM), XML),
    toy("toy-test", ("toy-test.arff", "toy/Toy-sparse.arff", DATA_SUM), XML),
    toy("wrong", ("wrong.arff", "toy/Toy-sparse.arff", LABEL_SUM), XML),
    toy("gone", ("gone.arff", "toy/gone.arff", DATA_SUM), XML),
    toy("cut", ("cut.arff", "toy/cut.arff", DATA_SUM), XML),
    toy("matrix", ("matrix.mat", "matrix.mat", f"git-blob:{git_id(MATRIX)}")),
    toy("bad-matrix", ("bad-matrix.mat", "matrix.mat", f"git-blob:{git_id(DATA)}")),
    toy("far"),
)
SERVED = {"/mirror/toy/Toy-sparse.arff": DATA, "/mirror/toy/Toy.xml": LABELS, "/mirror/matrix.mat": MATRIX}


class Server(ThreadingHTTPServer):
    """Serve a few files, count what is asked for, and break off in the middle of one."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: Counter[str] = Counter()
        self.url = f"http://127.0.0.1:{self.server_port}/mirror/"


class Handler(BaseHTTPRequestHandler):
    """Answer one request."""

    server: Server

    def do_GET(self) -> None:
        self.server.asked[self.path.rpartition("/")[2]] += 1
        cut = self.path.endswith("cut.arff")
        content = DATA if cut else SERVED.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        if not self.path.endswith(".mat"):  # without a length, the end of the connection is the end of the file
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(timeout=5)


@pytest.fixture
def server(running: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Serve the toys, with an empty cache."""
    monkeypatch.setattr(catalog, "ENTRIES", ENTRIES)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("LABELRACE_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running.asked.clear()
    return running


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_fetch(server):
    path = catalog.fetch("TOY", base_url=server.url)
    assert path == catalog.cache_folder() / "toy.arff" == catalog.find_dataset("toy")
    assert path.read_bytes() == DATA
    assert catalog.find_labels("toy").read_bytes() == LABELS
    assert files(path.parent) == ["toy.arff", "toy.xml"]
    assert catalog.ENTRIES[0].path == path


def test_what_is_there_is_not_fetched_again(server):
    catalog.fetch("toy", base_url=server.url)
    catalog.fetch("toy", base_url=server.url)
    catalog.fetch("toy-test", base_url=server.url)  # has the same label file
    assert server.asked == {"Toy-sparse.arff": 2, "Toy.xml": 1}
    (catalog.cache_folder() / "toy.arff").unlink()
    catalog.fetch("toy", base_url=server.url)
    assert server.asked == {"Toy-sparse.arff": 3, "Toy.xml": 1}


def test_data_folders_are_not_fetched_into_but_looked_into(server, tmp_path, monkeypatch):
    own = tmp_path / "own"
    catalog.fetch("toy", folder=own, base_url=server.url)
    monkeypatch.setenv("LABELRACE_DATA", str(own))
    assert catalog.fetch("toy") == own / "toy.arff"
    (own / "toy.arff").write_bytes(b"mine")
    assert catalog.fetch("toy", base_url=server.url).parent == catalog.cache_folder()
    assert (own / "toy.arff").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["wrong", "bad-matrix"])
def test_wrong_checksum_is_refused(server, name):
    with pytest.raises(catalog.DownloadError, match=r"what came from http://127.* is not the catalogued file.*deleted"):
        catalog.fetch(name, base_url=server.url)
    assert set(files(catalog.cache_folder())) <= {"toy.xml"}
    assert catalog.ENTRIES[2].path is None


@pytest.mark.parametrize(
    ("name", "message"), [("gone", "404.*Not Found"), ("cut", r"IncompleteRead|[Cc]onnection broken")]
)
def test_failed_download(server, name, message):
    with pytest.raises(LabelraceError, match=rf"cannot download http://127\S+/{name}\.arff: .*({message})"):
        catalog.fetch(name, base_url=server.url)
    assert files(catalog.cache_folder()) == ["toy.xml"]


def test_no_such_address(server):
    with pytest.raises(OSError, match=r"cannot download nonsense://host/matrix\.mat"):
        catalog.fetch("matrix", base_url="nonsense://host")


def test_another_file_of_that_name(server):
    path = catalog.cache_folder() / "toy.arff"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    with pytest.raises(catalog.DownloadError, match=r"toy\.arff is there, but it is not the catalogued .*force=True"):
        catalog.fetch("toy", base_url=server.url)
    assert path.read_bytes() == b"mine"
    assert not server.asked
    catalog.fetch("toy", base_url=server.url, force=True)
    assert path.read_bytes() == DATA


def test_failed_replacement_keeps_the_old_file(server):
    path = catalog.cache_folder() / "cut.arff"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    with pytest.raises(catalog.DownloadError):
        catalog.fetch("cut", base_url=server.url, force=True)
    assert path.read_bytes() == b"mine"


def test_matrix_by_git_id(server):
    path = catalog.fetch("matrix", base_url=server.url)
    assert path.read_bytes() == MATRIX
    assert catalog.find_dataset("Matrix") == path
    assert catalog.find_labels("matrix") is None


def test_progress(server):
    told: list[tuple[str, int, int]] = []
    catalog.fetch("toy", base_url=server.url, progress=lambda *news: told.append(news))
    assert [name for name, _, _ in told] == sorted((name for name, _, _ in told), reverse=True)
    data = [news for news in told if news[0] == "toy.arff"]
    assert len(data) > 3
    assert all(0 < done <= total == len(DATA) for _, done, total in data)
    assert data[-1] == ("toy.arff", len(DATA), len(DATA))


def test_progress_of_unknown_length(server):
    told: list[tuple[str, int, int]] = []
    catalog.fetch("matrix", base_url=server.url, progress=lambda *news: told.append(news))
    assert [total for _, _, total in told] == [0] * len(told)
    assert told[-1][1] >= len(MATRIX)


def test_unknown_name(server):
    with pytest.raises(ValueError, match=r"no dataset 'nonsense' in the catalog\. It has: toy, toy-test, wrong"):
        catalog.fetch("nonsense")
    with pytest.raises(ValueError, match=r"no dataset 'toy-t' in the catalog\. It has: toy-test\."):
        catalog.fetch("toy-t")


def test_a_catalogued_name_that_is_not_here(server):
    with pytest.raises(FileNotFoundError, match=r"`labelrace data fetch toy` downloads it.*LABELRACE_DATA"):
        catalog.find_dataset("toy")


@pytest.mark.parametrize("name", ["NUS-WIDE", "nuswide", "rcv1v2"])
def test_no_public_source(tmp_path, monkeypatch, name):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("LABELRACE_DATA", raising=False)
    for ask, error in ((catalog.fetch, catalog.DownloadError), (catalog.find_dataset, FileNotFoundError)):
        with pytest.raises(error, match=r"has no public source: bring its Mulan files .*synthetic\.like\("):
            ask(name)


def test_arff_comes_before_mat(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELRACE_DATA", str(tmp_path))
    for name in ("Music.mat", "music.arff", "news.mat"):
        (tmp_path / name).touch()
    assert catalog.find_dataset("Music").name == "music.arff"
    assert catalog.find_dataset("NEWS").name == "news.mat"
    assert catalog.find_labels("music") is None


def test_shared_label_file(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELRACE_DATA", str(tmp_path))
    for name in ("birds-train.arff", "birds.xml"):
        (tmp_path / name).touch()
    assert catalog.find_labels("Birds-Train") == tmp_path / "birds.xml"
    (tmp_path / "birds-train.xml").touch()
    assert catalog.find_labels("birds-train") == tmp_path / "birds-train.xml"


def test_git_id_and_verify(tmp_path):
    path = tmp_path / "file"
    for content in (b"", b"what is up, doc?", DATA):
        path.write_bytes(content)
        assert catalog.git_blob_id(path) == git_id(content)
        assert catalog.verify(path, f"git-blob:{git_id(content)}")
        assert catalog.verify(path, f"sha256:{hashlib.sha256(content).hexdigest().upper()}")
        assert not catalog.verify(path, f"sha256:{hashlib.sha256(b'other').hexdigest()}")
    path.write_bytes(b"what is up, doc?")  # the example in the book Pro Git
    assert catalog.git_blob_id(path) == "bd9dbf5aae1a3862dd1526723246b20206e5fc37"
    with pytest.raises(ValueError, match="checksum must begin with sha256: or git-blob:, got 'md5:0'"):
        catalog.verify(path, "md5:0")


def test_the_table_is_sound():
    entries = catalog.ENTRIES
    names = [entry.name for entry in entries]
    assert len(names) == len(set(names)) == 29
    assert {"cal500", "delicious", "enron", "mediamill", "nus-wide", "rcv1v2"} <= set(names)
    for entry in entries:
        assert min(entry.rows, entry.features, entry.labels) > 0
        assert entry.note
        for number, file in enumerate(entry.files):
            kind, digits = file.checksum.split(":")
            assert len(bytes.fromhex(digits)) == {"sha256": 32, "git-blob": 20}[kind]
            assert file.name == file.name.lower()
            assert file.base_url.startswith("https://")
            assert number or Path(file.name).stem == entry.name
    assert len({file.checksum for entry in entries for file in entry.files}) == 31


@pytest.mark.parametrize("name", ["cal500", "delicious", "emotions", "enron"])
def test_real_files_have_the_checksums_of_the_table(real_data, name):
    folder = real_data(name).parent
    entry = next(entry for entry in catalog.ENTRIES if entry.name == name)
    assert [file.name for file in entry.files] == [f"{name}.arff", f"{name}.xml"]
    assert all(catalog.verify(folder / file.name, file.checksum) for file in entry.files)
    assert catalog.find_labels(name) == catalog.find_dataset(name).with_suffix(".xml")
    assert catalog.fetch(name) == folder / f"{name}.arff"


def test_files_of_the_extreme_classification_repository_are_brought(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELRACE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    entries = {entry.name: entry for entry in catalog.ENTRIES if entry.bring}
    assert {"eurlex-4k", "wiki10-31k", "amazoncat-13k", "delicious-200k", "amazon-670k"} <= entries.keys()
    assert all(entry.labels > 1000 and Path(entry.bring).stem.lower() in entry.also for entry in entries.values())
    for tried in (catalog.fetch, catalog.find_dataset):
        with pytest.raises(OSError, match=r"labelrace run Eurlex/eurlex_train\.txt --model race"):
            tried("eurlex-4k")
    (tmp_path / "notes.txt").write_text("no dataset")
    file = tmp_path / "eurlex_train.txt"
    file.write_text("2 3 4\n0,3 0:1\n1 2:0.5\n")
    assert entries["eurlex-4k"].path == file
    assert load_dataset("EURLex-4K").Y.toarray().tolist() == [[1, 0, 0, 1], [0, 1, 0, 0]]
    with pytest.raises(FileNotFoundError, match="found eurlex_train there"):
        catalog.find_dataset("other")


def test_parts_for_training_and_testing_are_found_by_the_names_of_their_files(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELRACE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(FileNotFoundError, match="is in the Extreme Classification repository, http"):
        catalog.find_dataset("eurlex-test")
    for part in ("train", "test"):
        (tmp_path / f"eurlex_{part}.txt").write_text("1 3 4\n0,3 0:1\n")
    for name in ("eurlex-4k", "eurlex_train", "EURLex-train"):
        assert catalog.find_dataset(name).name == "eurlex_train.txt"
    for name in ("eurlex-4k-test", "eurlex_test", "eurlex-test"):
        assert catalog.find_dataset(name).name == "eurlex_test.txt"


def test_a_file_with_the_name_as_given_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELRACE_DATA", str(tmp_path))
    for name in ("a-b.arff", "a_b.arff"):
        (tmp_path / name).touch()
    assert [catalog.find_dataset(name).stem for name in ("a-b", "a_b")] == ["a-b", "a_b"]


@pytest.mark.parametrize(("name", "file"), [("mediamill", "mediamill"), ("eurlex-4k", "eurlex_train")])
def test_real_files_in_other_formats_are_what_the_catalog_says(real_data, name, file):
    real_data(file, ".npz" if name == "mediamill" else ".txt")
    data, entry = load_dataset(name), catalog.entry_of(name)
    assert (*data.X.shape, data.Y.shape[1]) == (entry.rows, entry.features, entry.labels)
