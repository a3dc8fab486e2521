"""The datasets of the catalog: where each public file is, and what its checksum must be."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ENTRIES", "Entry", "RemoteFile"]

# Files as a GitHub repository has them at one commit: what is there does not change.
_RAW = "https://raw.githubusercontent.com/{repository}/{commit}/{folder}"
_MULAN = _RAW.format(
    repository="tsoumakas/mulan",
    commit="43f6389095ad71984264db4387a8074b22bc7d4a",
    folder="data/multi-label",
)
_MLC_TOOLBOX = _RAW.format(
    repository="KKimura360/MLC_toolbox",
    commit="e7987792cc26a81028395a0761b65b2bc89364bd",
    folder="dataset/matfile",
)


class RemoteFile(NamedTuple):
    """A public file: its name once it is here, its address, and its checksum as ``kind:hexadecimal digits``."""

    name: str
    base_url: str
    path: str
    checksum: str


class Entry(NamedTuple):
    """A dataset. Of its files the first is the data, the second names the labels; none if there is no public source."""

    name: str
    rows: int
    features: int
    labels: int
    files: tuple[RemoteFile, ...]
    note: str


def _mulan(name: str, shape: tuple[int, int, int], data: tuple[str, str], labels: tuple[str, str], note: str) -> Entry:
    """Make the entry of a dataset in Mulan's format, from the path (without suffix) and SHA-256 of its two files."""
    label_file = labels[0].rpartition("/")[2].lower()
    files = (
        RemoteFile(f"{name}.arff", _MULAN, f"{data[0]}.arff", f"sha256:{data[1]}"),
        RemoteFile(f"{label_file}.xml", _MULAN, f"{labels[0]}.xml", f"sha256:{labels[1]}"),
    )
    return Entry(name, *shape, files, note)


_MEDIAMILL = RemoteFile(
    "mediamill.mat", _MLC_TOOLBOX, "mediamill.mat", "git-blob:ea5f24c5f64d7a81f4531f674f88002a97ff7c79"
)
_NO_SOURCE = "in the paper; no public source"

ENTRIES: tuple[Entry, ...] = (
    _mulan(
        "bibtex",
        (7395, 1836, 159),
        ("bibtex/bibtex", "a282a6d1fb3cdaf39bde3f81cd4e6079850a7a538a6bc44f8b4ed95dfe1e5014"),
        ("bibtex/bibtex", "08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232"),
        "bibliography",
    ),
    _mulan(
        "birds-train",
        (322, 260, 19),
        ("birds/birds-train", "8f215db6ee163149901e753977f631ba8bea0e0e8e1abc42b234414822f8ae36"),
        ("birds/birds", "0f4ea547b2b3d538c8402662daf689e0d4520cc8b4f5ba113c2e7c01700f010f"),
        "bird song, the part for training",
    ),
    _mulan(
        "birds-test",
        (323, 260, 19),
        ("birds/birds-test", "51ba6326d65ccdd7c755b6461280eb6d2769c7f59d8e12fd4250f91e6ca28326"),
        ("birds/birds", "0f4ea547b2b3d538c8402662daf689e0d4520cc8b4f5ba113c2e7c01700f010f"),
        "bird song, the part for testing",
    ),
    _mulan(
        "cal500",
        (502, 68, 174),
        ("cal500/cal500", "cfe6097ba5fd6e8584e54911ab9783dcab34e898446b7c9370c71d477eae56d3"),
        ("cal500/cal500", "877e128531268d7661faa3e44f7bb43cbcda829c0895e49879168775b192728c"),
        "music; in the paper",
    ),
    _mulan(
        "corel5k",
        (5000, 499, 374),
        ("corel5k/Corel5k-sparse", "12c06161d2367f919f6da912089a6c9180c115cfcefa37afacfdeb903930eb7e"),
        ("corel5k/Corel5k", "54ef6a6ccb7ca9b77524052b34b306d5d501661a5609b9d1cc7085b2b597679d"),
        "images",
    ),
    _mulan(
        "delicious",
        (16105, 500, 983),
        ("delicious/delicious", "b944de0bca910050c11d97eed57d17b073110ea3646a587f3d15d127cf581aab"),
        ("delicious/delicious", "4e0c0f93c7d86a39b9fca4aaefaa00e9428f2c80277732dfbf03ca48e2c14da2"),
        "web pages; in the paper",
    ),
    _mulan(
        "emotions",
        (593, 72, 6),
        ("emotions/emotions", "6f2f790047073d1293ac0872c0d55f2dc98b6177802fc96c6b66b309dfee1e4b"),
        ("emotions/emotions", "dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0"),
        "music",
    ),
    _mulan(
        "enron",
        (1702, 1001, 53),
        ("enron/enron", "d0889ef0576d4e7b5ec0df3b3e4760e476ac11a6e7d7ddeee4c4a34470dedf97"),
        ("enron/enron", "ed40c92d7f613eed51714912cab10dddc4ce456262137d8fef230d44c7f4457b"),
        "e-mail; in the paper",
    ),
    _mulan(
        "flags",
        (194, 19, 7),
        ("flags/flags", "d3ed8b5683f1b27e68069aad2c29388bb57d4caa5041b559e646cc3854a0cd1e"),
        ("flags/flags", "7c9ed21a91b716b91f811323e20ee5a260ea2da62a5edcfeb1b91ec855a48f17"),
        "flags of countries",
    ),
    _mulan(
        "foodtruck",
        (407, 21, 12),
        ("foodtruck/foodtruck", "f69e028cd3427b009a2b3147d78e6c955bc43c9dc1434d23e589a206fa332be3"),
        ("foodtruck/foodtruck", "a018e2a20480ef0c90c588ecc0bc4912f272a091fc26b00482377338e48b0c0d"),
        "customers of food trucks",
    ),
    _mulan(
        "genbase",
        (662, 1186, 27),
        ("genbase/genbase", "cb23052a49191e36e9a59cd661e97d79bed2e3f2583030a206692b57bf1e3671"),
        ("genbase/genbase", "198e8a1d7070e9603119e02e626cedc589db7577339b307b06f5192047b69eb9"),
        "proteins",
    ),
    _mulan(
        "medical",
        (978, 1449, 45),
        ("medical/medical", "ad0630a9a409ed0023c3bb56a0be7610b635c1ca185c6035e3b198b01167aac4"),
        ("medical/medical", "51fa9d5c09e48caff3f0a0c75db1c9aa85944f8e35451f3ad8bd56fc422286ce"),
        "radiology reports",
    ),
    Entry("mediamill", 43907, 120, 101, (_MEDIAMILL,), "video; in the paper"),
    Entry("nus-wide", 269648, 500, 81, (), f"images; {_NO_SOURCE}"),
    Entry("rcv1v2", 6000, 47236, 101, (), f"news; {_NO_SOURCE}"),
    _mulan(
        "scene-train",
        (1211, 294, 6),
        ("scene/scene-train", "b53ba93bdf412de922e3960389bcee24744fa3e872ce610511fc1d750888b64d"),
        ("scene/scene", "55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5"),
        "images, the part for training",
    ),
    _mulan(
        "scene-test",
        (1196, 294, 6),
        ("scene/scene-test", "ea38d20296b3ff7e220f477a3b802a9bcb2d768881fe6ee163efbc97ea527a42"),
        ("scene/scene", "55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5"),
        "images, the part for testing",
    ),
    _mulan(
        "tmc2007-500",
        (28596, 500, 22),
        ("tmc2007/tmc2007-500", "3ea7e95dd80a78a3e7d521d77c3371bfef888da1d364b5a3bb71c7222ad7f013"),
        ("tmc2007/tmc2007-500", "cb6a67c8ae72fd9b47d89f77aa5b7f6cafb4ba9c20b1124c65a95a3f2caec38d"),
        "aviation safety reports, the 500 best features",
    ),
    _mulan(
        "yeast",
        (2417, 103, 14),
        ("yeast/yeast", "55c07a3b6ff885ae338fb6987a1d57f55572b29809922c2822c4885c61230dd7"),
        ("yeast/yeast", "c3056cc26444b5158b1588d1b73bec9c45429e10f0957ad085903423cb81f247"),
        "genes",
    ),
)
