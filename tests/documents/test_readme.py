"""What the documents tell the reader to type works: Python runs on small data, commands exist and run."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest
import typer
from documents import ROOT, command_lines, read_blocks, run_python, run_setup, run_shell, stand_ins

from benchmarks.__main__ import app as benchmarks
from labelrace.cli.main import app

# Without those that a build of the site has made.
_PAGES = (path for path in sorted((ROOT / "docs").glob("**/*.md")) if not path.read_text().startswith("<!-- made by"))
DOCUMENTS = [ROOT / "README.md", *_PAGES]
NAMES = {path.relative_to(ROOT).as_posix(): path for path in DOCUMENTS}
PYTHON = {name: read_blocks(path, "python", "py", "pycon") for name, path in NAMES.items()}
SHELL = {name: read_blocks(path, "sh", "bash", "shell", "console") for name, path in NAMES.items()}
LINES = [line for blocks in SHELL.values() for line in command_lines(blocks)]
# Too long for a test, or in need of a network: their options are checked, and their own tests run them.
_OURS = re.compile(r"labelrace |python -m benchmarks ")
_NOT_RUN = re.compile(r"labelrace (data fetch|serve)\b")

README_LIKE = """
# A document

<!-- setup:
ready = 2
-->
<!-- needs: json -->
```python
import labelrace
total = ready + labelrace.load_dataset("rows.csv").Y.shape[1]
```

Text with `code` and ```` ``` ````.

```sh
cat rows.jsonl | labelrace predict old.safetensors - --top 5    # a comment
labelrace run rows.csv \\
    --runs 2
```

```python
>>> total
7
```

<!-- not run: it needs a week -->
```python
raise RuntimeError
```
"""


@pytest.fixture
def document(tmp_path):
    """Return a function that writes a document and returns its blocks."""

    def write(text, *languages):
        path = tmp_path / "page.md"
        path.write_text(text)
        return read_blocks(path, *languages)

    return write


def parse(program, words):
    """Let a command read its arguments, without doing anything."""
    command, name, context, rest = typer.main.get_command(program), "labelrace", None, list(words)
    while True:
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "resolve_command"):
            break
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])


@pytest.mark.parametrize("name", [name for name, blocks in PYTHON.items() if blocks])
def test_python_blocks_run(name, tmp_path):
    for block in run_python(PYTHON[name], tmp_path):
        assert not block.missing, f"{block.where} needs {block.missing}, which the development tools lack"


def test_the_readme_has_python_and_all_of_it_runs():
    assert PYTHON["README.md"]
    assert not [block.where for block in PYTHON["README.md"] if block.not_run]


@pytest.mark.parametrize("line", [pytest.param(line, id=where) for where, line in LINES if _OURS.search(line)])
def test_commands_can_be_typed(line):
    for part in line.split("|"):
        words = shlex.split(re.sub(r"^(\s*\w+=\S*)+", "", part))
        if words[0] == "labelrace":
            parse(app, words[1:])
        elif words[:3] == ["python", "-m", "benchmarks"]:
            parse(benchmarks, words[3:])


@pytest.mark.parametrize("name", [name for name, blocks in SHELL.items() if blocks])
def test_commands_run(name, tmp_path):
    stand_ins(SHELL[name], tmp_path)
    for block in SHELL[name]:
        run_setup(block, tmp_path, {})
        for _, line in command_lines([] if block.not_run else [block]):
            if "labelrace " in line and "pip install" not in line and not _NOT_RUN.search(line):
                run_shell(re.sub(r"--runs \d+", "--runs 1", line), tmp_path)


@pytest.mark.parametrize("line", [pytest.param(line, id=where) for where, line in LINES if line.startswith("make ")])
def test_make_targets_exist(line):
    makefile = (ROOT / "Makefile").read_text()
    for target in shlex.split(line)[1:]:
        assert "=" in target or re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE)


def test_extras_that_the_documents_install_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for path in DOCUMENTS:
        for named in re.findall(r"labelrace\[([\w, ]+)\]", path.read_text()):
            assert set(re.split(r", *", named)) <= extras.keys(), path.name


def test_links_to_files_lead_somewhere():
    # Those of the site are checked when it is built, some to pages that are made then.
    for path in (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")):
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_blocks_are_found_with_their_comments(document):
    first, session, last = document(README_LIKE, "python")
    assert first[:3] == ("page.md", 9, "python")
    assert first.code.startswith("import labelrace\ntotal =")
    assert first[4:] == ("ready = 2", ("json",), "")
    assert (session.line, session.setup, session.needs) == (22, "", ())
    assert last.not_run == "it needs a week"


def test_blocks_share_names_and_files_and_say_where_they_fail(document, tmp_path):
    blocks = document(README_LIKE, "python")
    assert [block.line for block in run_python(blocks, tmp_path)] == [9, 22, 28]
    wrong = document(README_LIKE.replace("\n7\n", "\n8\n"), "python")
    with pytest.raises(AssertionError, match=r"page\.md.*(?s:.*)Expected:\s+8\s+Got:\s+7"):
        list(run_python(wrong, tmp_path))
    broken = document(README_LIKE.replace("ready + ", "unknown + "), "python")
    with pytest.raises(NameError, match="unknown") as raised:
        list(run_python(broken, tmp_path))
    assert str(raised.traceback[-1].path).endswith("page.md")
    assert raised.traceback[-1].lineno + 1 == 10


def test_blocks_that_need_what_is_not_installed_are_passed_over(document, tmp_path):
    (block,) = document("<!-- needs: no_such_module -->\n```python\nimport no_such_module\n```\n", "python")
    assert block.missing == ["no_such_module"]
    assert list(run_python([block], tmp_path)) == [block]


def test_lines_of_shell_blocks(document, tmp_path):
    blocks = document(README_LIKE, "sh")
    (where, first), (_, second) = command_lines(blocks)
    assert (where, first) == ("page.md:16", "cat rows.jsonl | labelrace predict old.safetensors - --top 5")
    assert shlex.split(second) == ["labelrace", "run", "rows.csv", "--runs", "2"]
    stand_ins(blocks, tmp_path)
    assert {"rows.csv", "rows.jsonl", "old.safetensors"} <= {path.name for path in tmp_path.iterdir()}
    run_shell(first, tmp_path)
    with pytest.raises(AssertionError, match=r"ended with status 1:(?s:.*)nowhere\.csv"):
        run_shell("labelrace predict old.safetensors nowhere.csv", tmp_path)


@pytest.mark.parametrize("words", ["run --no-such-option", "no-such-command", "data make", "predict only-one"])
def test_a_wrong_line_is_noticed(words):
    with pytest.raises(Exception, match=r"No such|Missing"):
        parse(app, words.split())
