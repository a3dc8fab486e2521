"""The public names, and that importing them costs nothing before they are used."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import labelrace
from labelrace import exceptions

ROOT = Path(__file__).parents[1]
# What users import by name beside the package itself.
PACKAGES = (
    "labelrace",
    *(f"labelrace.{name}" for name in ("checks", "evaluation", "measures", "report", "river", "streams")),
)
# The modules of the dependencies, and those of extras and development tools. (scikit-learn imports pandas if it can.)
REQUIRED = {
    "numpy", "scipy", "sklearn", "numba", "pyarrow", "safetensors", "threadpoolctl", "typer", "rich", "jinja2", "pooch",
}  # fmt: skip
EXTRA = {"fastapi", "httpx", "hypothesis", "matplotlib", "pytest", "river", "sqlalchemy", "uvicorn", "yaml"}


def public_names():
    """Return all public functions and classes, by where users import them from."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            if inspect.isclass(getattr(module, name)) or inspect.isroutine(getattr(module, name)):
                found[f"{package}.{name}"] = getattr(module, name)
    return found


PUBLIC = public_names()
ESTIMATORS = {name: one for name, one in PUBLIC.items() if hasattr(one, "get_params")}


def is_record(one):
    """Return whether something only holds values that others return."""
    if not isinstance(one, type) or hasattr(one, "get_params"):
        return False
    return hasattr(one, "_fields") or is_dataclass(one) or issubclass(one, Exception)


def run(code):
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split()


def loaded_by(code):
    """Return the top-level modules that a program imports."""
    return set(run(f"import sys; {code}; print(*{{name.partition('.')[0] for name in sys.modules}})"))


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys; before = set(sys.modules); import labelrace; dir(labelrace); print(*set(sys.modules) - before)"
    loaded = run(code)
    assert "labelrace" in loaded
    assert {name for name in loaded if name.startswith("labelrace")} <= {
        "labelrace",
        "labelrace.base",
        "labelrace.base.registry_entries",
    }
    assert not REQUIRED & {name.partition(".")[0] for name in loaded}


def test_public_names_need_no_extra_and_only_compressed_labels_need_numba():
    names = [name for name in labelrace.__all__ if name != "HashedRACEClassifier"]
    loaded = loaded_by(f"import labelrace; [getattr(labelrace, name) for name in {names}]")
    assert {"numpy", "sklearn", "labelrace"} <= loaded
    assert not (EXTRA | {"numba"}) & loaded
    loaded = loaded_by("import labelrace; labelrace.HashedRACEClassifier")
    assert "numba" in loaded
    # Numba reads its settings by yaml where that is installed.
    assert not (EXTRA - {"yaml"}) & loaded


def test_every_public_name_exists_and_is_listed():
    assert len(set(labelrace.__all__)) == len(labelrace.__all__)
    assert list(labelrace.__all__) == sorted(labelrace.__all__)
    for name in labelrace.__all__:
        assert getattr(labelrace, name) is not None
        assert name in dir(labelrace)
    assert {"RACEClassifier", "load", "load_dataset", "make_model", "model_names"} <= set(labelrace.__all__)


def test_everything_can_be_imported_at_once():
    space: dict[str, object] = {}
    exec("from labelrace import *", space)
    assert set(labelrace.__all__) <= set(space)


def test_the_version_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", labelrace.__version__)


def test_names_that_do_not_exist():
    with pytest.raises(AttributeError, match="module 'labelrace' has no attribute 'RaceClassifier'"):
        labelrace.RaceClassifier  # noqa: B018
    assert not hasattr(labelrace, "nothing")
    with pytest.raises(ImportError):
        exec("from labelrace import nothing")


def test_errors_are_of_the_kinds_that_users_catch_already():
    own = {name: one for name, one in vars(exceptions).items() if isinstance(one, type)}
    assert len(own) == 12
    for name, one in own.items():
        assert issubclass(one, UserWarning if name.endswith("Warning") else exceptions.LabelraceError)
    for name in ("DataFormatError", "GrowthError", "MergeError", "ModelFileError", "UnknownRowError"):
        assert issubclass(getattr(exceptions, name), ValueError)
    assert issubclass(exceptions.DivergenceError, ArithmeticError)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_things_are_documented(name):
    first, _, rest = (PUBLIC[name].__doc__ or "").strip().partition("\n")
    assert first.endswith("."), "the docstring must start with one sentence on one line"
    assert is_record(PUBLIC[name]) or rest.strip(), "the docstring must say more than one sentence"


def test_public_things_have_an_example_that_runs():
    # The tests run all examples of the package; here each public thing must have one.
    for name, one in PUBLIC.items():
        examples = doctest.DocTestParser().get_examples(one.__doc__ or "")
        assert is_record(one) or not all(doctest.SKIP in example.options for example in examples), name


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_and_methods_of_estimators_are_documented(name):
    text = inspect.cleandoc(ESTIMATORS[name].__doc__)
    described = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n|\Z)", text, re.DOTALL | re.MULTILINE)[1]
    listed = set(re.findall(r"\w+", " ".join(re.findall(r"^(\w.*?)(?: :|$)", described, re.MULTILINE))))
    # A class that takes the parameters of another may refer to it.
    assert "**parameters" in described or inspect.signature(ESTIMATORS[name]).parameters.keys() <= listed
    for method, one in inspect.getmembers(ESTIMATORS[name], callable):
        assert method.startswith("_") or inspect.getdoc(one), method


def test_extras_are_what_is_not_required():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {re.match(r"[\w-]+", line)[0].replace("scikit-learn", "sklearn") for line in project["dependencies"]}
    assert required == REQUIRED
