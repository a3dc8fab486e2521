"""The code blocks of Markdown documents, and how to run them on small data.

Plain Python, for the tests of the documents and for the smoke set. Three HTML comments, each on the lines right before
a block, say what the reader does not see:

- ``<!-- setup: … -->`` holds Python that runs before the block, for names and files that the reader has;
- ``<!-- needs: river, pandas -->`` names modules beyond the dependencies, without which the block is skipped;
- ``<!-- not run: why -->`` leaves the block out.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["ROOT", "Block", "command_lines", "read_blocks", "run_python", "run_setup", "run_shell", "stand_ins"]

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^```(?P<language>[a-z]+)[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENTS = re.compile(r"(?:<!--(?:(?!-->).)*-->\s*)+\Z", re.DOTALL)
_COMMENT = re.compile(r"<!-- *(setup|needs|not run):\s*(.*?)\s*-->", re.DOTALL)
_DATA_FILE = re.compile(r"[\w./-]+?\.(?:arff|csv|tsv|jsonl|parquet|npz|svm)(?:\.gz)?(?![\w.])")
_TRAINED_FILE = re.compile(r"labelrace train .*-o (\S+)")
_MODEL_FILE = re.compile(r"[\w./-]+\.safetensors")
_NAMED_DATASET = re.compile(
    r"""(?:load_dataset\(\s*["']|^labelrace (?:run|train) )([\w-]+)(?:["']|(?= ))""", re.MULTILINE
)
# Where named datasets are, as after 'labelrace data fetch': not in the folder that the reader works in.
_FETCHED = "fetched"
# Rows that are yet to be labelled.
_PIPED = re.compile(r"^(?:\$ )?cat ([\w./-]+\.jsonl) *\|", re.MULTILINE)
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


class Block(NamedTuple):
    """A code block: where it is, what it says, and what its comments say."""

    document: str
    line: int
    language: str
    code: str
    setup: str = ""
    needs: tuple[str, ...] = ()
    not_run: str = ""

    @property
    def where(self) -> str:
        """The document and the line on which the code starts."""
        return f"{self.document}:{self.line}"

    @property
    def missing(self) -> list[str]:
        """The modules that the block needs and that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def read_blocks(path: Path, *languages: str) -> list[Block]:
    """Return the blocks of a document that are in one of the languages, in order."""
    text = path.read_text(encoding="utf-8")
    found = []
    for fence in _FENCE.finditer(text):
        if fence["language"] not in languages:
            continue
        before = _COMMENTS.search(text, 0, fence.start())
        said = dict(_COMMENT.findall(before[0])) if before else {}
        found.append(
            Block(
                path.name,
                text.count("\n", 0, fence.start("code")) + 1,
                fence["language"],
                fence["code"],
                said.get("setup", ""),
                tuple(re.split(r"[,\s]+", said["needs"])) if "needs" in said else (),
                said.get("not run", ""),
            )
        )
    return found


@contextlib.contextmanager
def working_folder(folder: Path) -> Iterator[None]:
    """Work in a folder; named datasets are looked for in the one beside it that they have been fetched to."""
    before, data = Path.cwd(), os.environ.get("LABELRACE_DATA")
    os.chdir(folder)
    os.environ["LABELRACE_DATA"] = str(folder / _FETCHED)
    try:
        yield
    finally:
        os.chdir(before)
        if data is None:
            del os.environ["LABELRACE_DATA"]
        else:
            os.environ["LABELRACE_DATA"] = data


def stand_ins(blocks: list[Block], folder: Path) -> None:
    """Write a small dataset, or a small model, under every name of such a file in the blocks."""
    code = "\n".join(block.code for block in blocks)
    data = {*_DATA_FILE.findall(code), *(f"{_FETCHED}/{name}.arff" for name in _NAMED_DATASET.findall(code))}
    # Those that a block trains are not there before: `train` does not replace a file without --force.
    models = set(_MODEL_FILE.findall(code)).difference(_TRAINED_FILE.findall(code))
    if not data and not models:
        return
    run_shell("labelrace data make stand-in.arff --rows 240 --features 6 --labels 5", folder)
    for name in sorted(data):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        run_shell(f"labelrace data convert stand-in.arff {name}", folder)
    for name in set(_PIPED.findall(code)):
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        rows = ({key: value for key, value in json.loads(line).items() if key != "labels"} for line in lines)
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    if models:
        run_shell("labelrace train stand-in.arff -o stand-in.safetensors", folder)
        for name in models:
            shutil.copy(folder / "stand-in.safetensors", folder / name)


def run_python(blocks: list[Block], folder: Path) -> Iterator[Block]:
    """Run the blocks one after the other in one namespace, and yield each after it has run.

    What fails raises what it raised; the traceback names the document and its line.
    """
    stand_ins(blocks, folder)
    space: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        if not block.not_run and not block.missing:
            run_setup(block, folder, space)
            with working_folder(folder), contextlib.redirect_stdout(io.StringIO()):
                if ">>>" in block.code:
                    _run_session(block, space)
                else:
                    exec(compile("\n" * (block.line - 1) + block.code, block.document, "exec"), space)
        yield block


def run_setup(block: Block, folder: Path, space: dict[str, Any]) -> None:
    """Run what the block's comment says must be there before it."""
    with working_folder(folder):
        exec(compile(block.setup, f"setup of {block.where}", "exec"), space)


def _run_session(block: Block, space: dict[str, Any]) -> None:
    """Run a block with prompts; what it prints must be what the block shows."""
    session = doctest.DocTestParser().get_doctest(block.code, {}, block.where, block.document, block.line - 1)
    session.globs = space
    report = io.StringIO()
    failed = doctest.DocTestRunner(optionflags=_FLAGS).run(session, out=report.write, clear_globs=False).failed
    if failed:
        raise AssertionError(report.getvalue())


def command_lines(blocks: list[Block]) -> list[tuple[str, str]]:
    """Return the lines of shell blocks, without their comments, each with where it stands."""
    found = []
    for block in blocks:
        for number, line in enumerate(block.code.replace("\\\n", "  ").splitlines()):
            typed = re.sub(r"(^|\s)#.*", "", line).removeprefix("$ ").strip()
            if typed:
                found.append((f"{block.document}:{block.line + number}", typed))
    return found


def run_shell(line: str, folder: Path) -> None:
    """Run a line in a folder, with this environment's ``labelrace``; it must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    ended = subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path, "LABELRACE_DATA": str(folder / _FETCHED), "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise AssertionError(f"{line}\nended with status {ended.returncode}:\n{ended.stdout}{ended.stderr}")
