"""``labelrace predict`` between pipes, in a process of its own."""

import json
import os
import select
import subprocess
import sys

import pytest

import labelrace

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot wait for pipes")


def answer(process):
    """Return the next line, which must come while standard input is open."""
    ready, _, _ = select.select([process.stdout], [], [], 60)
    assert ready, "no answer"
    return json.loads(process.stdout.readline())


def test_answers_come_at_once_and_the_reader_may_leave(data, model_file):
    """As in ``… | labelrace predict model - | head -3``, with a source that takes its time."""
    program = "from labelrace.cli.main import main; main()"
    arguments = [sys.executable, "-c", program, "predict", str(model_file), "-", "--batch-size", "1"]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    expected = labelrace.load(model_file).predict(data.X[:3]).toarray() > 0
    with subprocess.Popen(arguments, bufsize=0, **streams) as process:
        for number in range(3):
            process.stdin.write(json.dumps(data.X[number].tolist()).encode() + b"\n")
            found = answer(process)
            assert found["row"] == number
            assert [name in found["labels"] for name in data.label_names] == expected[number].tolist()
        process.stdout.close()
        process.stdin.write(b"[1, 2, 3, 4, 5]\n" * 20)
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_a_reader_that_has_left_before_a_short_answer():
    """What is in the buffer when the command ends is no error either."""
    reading, writing = os.pipe()
    os.close(reading)
    program = "from labelrace.cli.main import main; main()"
    with os.fdopen(writing, "wb") as nobody:
        ended = subprocess.run([sys.executable, "-c", program, "data", "--help"], stdout=nobody, stderr=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("raised", ["BrokenPipeError(32, 'Broken pipe')", "SystemExit(1)"])
def test_another_pipe_that_breaks_is_an_error(raised):
    """Such as one to a worker that was killed: the reader of the output is still there."""
    program = f"""
import labelrace.cli.main as command
def app(**_):
    try:
        raise BrokenPipeError(32, "Broken pipe")
    except OSError:
        raise {raised}
command.app = app
command.main()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "Error: Broken pipe.\n")


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        ("predict {model} {data} >&-", 1, "Error: Standard output must be open to print predictions, but it is closed"),
        ("predict {model} - <&-", 1, "Error: Standard input must be open to read '-', but it is closed"),
        ("inspect {model} >&-", 0, "Standard output is closed: the output is lost.\n"),
        ("data list >&-", 0, "Standard output is closed: the output is lost.\n"),
        ("train {data} -o new >&-", 0, "Standard output is closed: the output is lost.\n"),
        ("train {data} -o new <&- >&- 2>&-", 0, ""),
        ("predict {model} {data} >&- 2>&-", 1, ""),
        ("predict {model} {data} -o new.csv <&-", 0, ""),
    ],
)
def test_closed_streams(model_file, files, tmp_path, arguments, status, told):
    program = [sys.executable, "-c", "'from labelrace.cli import command; command()'"]
    text = " ".join([*program, arguments.format(model=model_file, data=files(".csv"))])
    ended = subprocess.run(text, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert ended.stderr.startswith(told)
    assert ended.stderr.count("\n") == bool(told)
    if "-o new" in arguments:
        assert [path.name for path in tmp_path.iterdir()] == ["new.csv" if "predict" in arguments else "new"]


def test_training_goes_on_when_nobody_reads_what_is_printed(tmp_path):
    """As in ``labelrace train … | head -1``: the kinds of columns are printed while rows are still to be learned."""
    rows = ["nr,body,tags", *(f"T-{i},the {word} is broken again {i},{word}" for i in range(600) for word in ("oven",))]
    (tmp_path / "old.csv").write_text("\n".join(rows) + "\n")
    reading, writing = os.pipe()
    os.close(reading)
    program = "from labelrace.cli.main import main; main()"
    arguments = ["train", "old.csv", "--tags", "tags", "-o", "t.labelrace", "--batch-size", "100"]
    with os.fdopen(writing, "wb") as nobody:
        command = [sys.executable, "-c", program, *arguments]
        ended = subprocess.run(command, stdout=nobody, stderr=subprocess.PIPE, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert labelrace.load(tmp_path / "t.labelrace").n_rows_ == 600
