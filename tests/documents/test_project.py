"""The files around the package agree with it and with each other."""

from __future__ import annotations

import importlib.util
import itertools
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from datetime import date
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.version import Version

import labelrace

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HEADINGS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def read_yaml(name):
    return yaml.safe_load((ROOT / name).read_text())


def lint_commands():
    """Return the tools that `make lint` runs, with their subcommand if they have one."""
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    return re.findall(r"^\t\$\(VENV\)/(bin/\S+(?: [a-z]+)?)", recipe, re.MULTILINE)


def locked_requirements():
    lines = re.findall(r"^([a-z].*?) *\\?$", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    return [Requirement(line) for line in lines]


def test_the_supported_pythons_are_the_same_everywhere():
    assert PYTHONS == ["3.11", "3.12", "3.13", "3.14", "3.15"]
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{PYTHONS[0].replace('.', '')}"
    assert f"({PYTHONS[0].replace('.', ', ')})" in (ROOT / "Makefile").read_text()
    jobs = read_yaml(".github/workflows/ci.yml")["jobs"]
    # All tests on these, the smoke set on the newest, as .ci/next-pythons does.
    matrices = [jobs[job]["strategy"]["matrix"]["python"] for job in ("gate", "newest")]
    assert [version for matrix in matrices for version in matrix] == PYTHONS
    newest = re.search(r"set -- (.*)$", (ROOT / ".ci" / "next-pythons").read_text(), re.MULTILINE)[1].split()
    assert newest == matrices[1]


def test_the_workflow_runs_the_gate():
    steps = read_yaml(".github/workflows/ci.yml")["jobs"]["gate"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == [".ci/run"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_little_and_run_what_was_read(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    used = re.findall(r"uses: (.*)", path.read_text())
    assert used
    for one in used:
        assert one.startswith("./") or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one
    for name, job in workflow["jobs"].items():
        assert "uses" in job or job["timeout-minutes"] <= 40, name
        # What a tag or a branch is called is not put into a script, it may hold anything.
        scripts = [step["run"] for step in job.get("steps", ()) if "run" in step]
        assert not any("${{" in script for script in scripts), name
        for step in job.get("steps", ()):
            if "actions/checkout@" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False, name
    for target in re.findall(r"\bmake ([a-z]+)", path.read_text()):
        assert target == "docs" or re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


def test_one_version_of_each_action():
    used = {line for path in WORKFLOWS for line in re.findall(r"uses: (\w.*)", path.read_text())}
    assert len(used) == len({line.split("@")[0] for line in used})


def test_only_the_last_job_of_a_release_may_publish():
    jobs = read_yaml(".github/workflows/release.yml")["jobs"]
    may = [name for name, job in jobs.items() if "permissions" in job]
    assert may == ["publish"]
    assert set(jobs["publish"]["needs"]) == {"gate", "build"}
    assert jobs["gate"]["uses"] == "./.github/workflows/ci.yml"
    assert not any("run" in step for step in jobs["publish"]["steps"])


def test_a_tag_that_disagrees_is_told(tmp_path):
    spec = importlib.util.spec_from_file_location("check_tag", ROOT / ".ci" / "check_tag.py")
    check_tag = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check_tag)
    (tmp_path / "src" / "labelrace").mkdir(parents=True)
    (tmp_path / "src" / "labelrace" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.3\ndate-released: 2026-01-02\n")
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n## 1.2.3 - 2026-01-02\n\n## 1.2.2 - 2026-01-01\n")
    assert check_tag.problems("v1.2.3", tmp_path) == []
    [told] = check_tag.problems("1.2.3", tmp_path)
    assert "The tag is 1.2.3" in told
    (tmp_path / "CITATION.cff").write_text("version: 1.2.2\n")
    assert len(check_tag.problems("v1.2.3", tmp_path)) == 2
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n")
    assert "CHANGELOG.md is none" in check_tag.problems("v1.2.3", tmp_path)[-1]
    # Of the project itself only the release is missing, until there is one.
    assert not [
        line for line in check_tag.problems(f"v{labelrace.__version__}") if "tag" in line or "version in" in line
    ]


def test_the_hooks_are_those_of_the_gate():
    [repository] = read_yaml(".pre-commit-config.yaml")["repos"]
    # The environment's own tools, so that there is no second place with versions.
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == [f".venv/{command}" for command in lint_commands()]
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}


@pytest.mark.parametrize("python", PYTHONS)
def test_everything_is_locked_for_every_python(python):
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    locked = {}
    for one in locked_requirements():
        if one.marker is None or one.marker.evaluate(environment):
            assert one.name not in locked, f"two versions of {one.name}"
            locked[one.name] = str(one.specifier).removeprefix("==")
    project = PROJECT["project"]
    groups = [project["dependencies"], PROJECT["dependency-groups"]["dev"], *project["optional-dependencies"].values()]
    for wanted in map(Requirement, itertools.chain.from_iterable(groups)):
        if wanted.name == "labelrace":
            assert wanted.extras <= project["optional-dependencies"].keys()
            continue
        assert wanted.name in locked, wanted
        assert wanted.specifier.contains(locked[wanted.name]), wanted


def test_the_lowest_versions_are_those_that_are_tried():
    """`make lowest` installs what pyproject.toml promises, no more."""
    tried = {
        one.name: str(one.specifier) for one in map(Requirement, (ROOT / ".ci/lowest.txt").read_text().splitlines())
    }
    project = PROJECT["project"]
    extras = re.search(r"LOWEST_EXTRAS = \((.*)\)", (ROOT / ".ci" / "smoke.py").read_text())[1]
    wanted = [project["optional-dependencies"][extra] for extra in re.findall(r'"(\w+)"', extras)]
    for one in map(Requirement, itertools.chain(project["dependencies"], *wanted)):
        lowest = Version(str(one.specifier).removeprefix(">="))
        assert Version(tried[one.name].removeprefix("==")) == lowest, one


def test_the_conda_recipe_is_that_of_the_package():
    recipe = read_yaml("packaging/conda/recipe.yaml")
    project = PROJECT["project"]
    context, about, build = recipe["context"], recipe["about"], recipe["build"]
    assert context["version"] == labelrace.__version__
    assert f">={context['python_min']}" == project["requires-python"]
    assert (about["summary"], about["license"], about["license_file"]) == (
        project["description"],
        project["license"],
        project["license-files"],
    )
    [entry_point] = build["python"]["entry_points"]
    assert dict([entry_point.split(" = ")]) == project["scripts"]
    assert [line.replace(" ", "") for line in recipe["requirements"]["run"][1:]] == project["dependencies"]
    assert recipe["requirements"]["host"][2:] == [PROJECT["build-system"]["requires"][0].replace(">=", " >=")]
    # What conda calls otherwise.
    names = {"matplotlib-base": "matplotlib", "dask-core": "dask"}
    bounds = dict(line.split(" ") for line in recipe["requirements"]["run_constraints"])
    extras = map(Requirement, itertools.chain.from_iterable(project["optional-dependencies"].values()))
    wanted = {one.name: str(one.specifier) for one in extras}
    assert {names.get(name, name): bound for name, bound in bounds.items()}.items() <= wanted.items()


def test_the_lock_has_hashes_and_no_registry():
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    assert not re.search(r"^\s*--(?!hash=sha256:)", lock, re.MULTILINE)
    for entry in re.split(r"\n(?=[a-z])", lock):
        assert "--hash=sha256:" in entry, entry


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout, so nothing tells what is the project's")
def test_no_registry_is_named():
    """Where packages come from is for those who install them to say."""
    # In parts, so that this file does not name them.
    hosts = [".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("anaconda", "org"))]
    searched = ["git", "grep", "--fixed-strings", "--ignore-case", "-n", *(f"-e{host}" for host in hosts)]
    found = subprocess.run(searched, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (1, ""), found.stdout


def distributions(modules):
    """Return the names of what has to be installed for modules."""
    there = packages_distributions()
    return {name.lower().replace("_", "-") for module in modules for name in there.get(module.partition(".")[0], ())}


def extra(name):
    """Return the names of what an extra installs, with the extras that it names itself."""
    own = list(map(Requirement, PROJECT["project"]["optional-dependencies"][name]))
    named = [more for one in own if one.name == "labelrace" for more in one.extras]
    return {one.name for one in own}.union(*map(extra, named)) - {"labelrace"}


def test_the_extra_docs_is_all_that_the_site_needs():
    pytest.importorskip("sphinx")
    project = PROJECT["project"]
    installed = extra("docs") | {Requirement(one).name for one in project["dependencies"]}
    # What is imported by name.
    sources = [*(ROOT / "docs").glob("*/*.py"), ROOT / "docs" / "conf.py"]
    imported = re.findall(r"^ *(?:import|from) ([\w.]+)", "\n".join(p.read_text() for p in sources), re.MULTILINE)
    extensions = re.search(
        r"^extensions = \[(.*?)\]", (ROOT / "docs" / "conf.py").read_text(), re.DOTALL | re.MULTILINE
    )
    imported += re.findall(r'"(.*)"', extensions[1])
    # Sphinx brings docutils.
    assert distributions(imported) - {"labelrace", "docutils"} <= installed
    # And what the package's own modules import then, those that the site has pages of among them.
    code = "import sys, generated, reference; [__import__(name) for name in reference._PUBLIC]; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "docs/_ext", capture_output=True, text=True, check=True
    )
    optional = set().union(*map(extra, project["optional-dependencies"]))
    assert distributions(ran.stdout.split()) & optional <= installed


def test_clean_removes_what_git_ignores():
    recipe = re.search(r"^clean:\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    ignored = (ROOT / ".gitignore").read_text().split()
    removed = set(re.findall(r"[^\s'\\]+", recipe))
    assert {path.rstrip("/") for path in ignored} <= removed
    if (ROOT / ".git").exists():
        kept = subprocess.run(["git", "ls-files", "--", *removed - {"."}], cwd=ROOT, capture_output=True, text=True)
        assert not kept.stdout, "what git has is no result of a build"


def test_the_citation():
    citation = read_yaml("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["title"].startswith("labelrace")
    assert citation["version"] == labelrace.__version__
    # The package's own. What is vendored has others, and a citation file knows no "AND".
    assert citation["license"] == PROJECT["project"]["license"].split(" AND ")[0]
    assert [author["name"] for author in citation["authors"]] == [a["name"] for a in PROJECT["project"]["authors"]]
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == ["Ahmadi", "Kramer"]
    readme = (ROOT / "README.md").read_text()
    assert paper["title"].lower() in " ".join(readme.split()).lower()
    assert paper["doi"].endswith(re.search(r"arXiv:(\d{4}\.\d{5})", readme)[1])


def test_the_changelog():
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert versions[0] == "Unreleased"
    for version in versions[1:]:
        number, released = re.fullmatch(r"(\d+\.\d+\.\d+) - (\S+)", version).groups()
        assert date.fromisoformat(released) <= date.today()
        assert number
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        headings = re.findall(r"^### (.*)$", section, re.MULTILINE)
        assert set(headings) <= HEADINGS
        assert len(set(headings)) == len(headings)


def build(target, folder, source=ROOT):
    """Build the wheel or the source distribution, and return its file."""
    pytest.importorskip("hatchling")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    [file] = folder.glob("labelrace-*")
    return file


def package_files():
    """Return the files of the package, without what Python and Numba have compiled."""
    files = (p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src" / "labelrace").rglob("*") if p.is_file())
    return {path for path in files if "__pycache__" not in path}


def read_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {path: archive.read(path) for path in archive.namelist()}


def test_the_wheel_is_the_package_and_nothing_else(tmp_path):
    wheel = build("wheel", tmp_path)
    files = read_wheel(wheel)
    assert {path for path in files if not path.startswith("labelrace-")} == package_files()
    [metadata] = [content for path, content in files.items() if path.endswith(".dist-info/METADATA")]
    check_metadata(metadata, wheel)


def test_the_source_distribution_is_what_it_takes_to_build(tmp_path):
    """No tests, no documents, no data but what the package needs; what is built from it is the wheel."""
    sdist = build("sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        members = {member.name.split("/", 1)[1]: member for member in archive.getmembers()}
        metadata = archive.extractfile(members["PKG-INFO"]).read()
        archive.extractall(tmp_path, filter="data")
    assert all(member.isfile() for member in members.values())
    # hatchling adds .gitignore, by which it leaves out what git does.
    beside = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "SECURITY.md", "pyproject.toml"}
    assert members.keys() == {f"src/{path}" for path in package_files()} | beside | {".gitignore", "PKG-INFO"}
    check_metadata(metadata, sdist)
    unpacked = build("wheel", tmp_path / "wheel", tmp_path / sdist.name.removesuffix(".tar.gz"))
    assert read_wheel(unpacked) == read_wheel(build("wheel", tmp_path / "checkout"))


def check_metadata(text, file):
    """Check that the metadata are the project's, and by twine what registries refuse."""
    metadata = Metadata.from_email(text, validate=True)
    assert metadata.name == "labelrace"
    assert str(metadata.version) == labelrace.__version__
    assert metadata.license_expression == PROJECT["project"]["license"]
    assert metadata.license_files == PROJECT["project"]["license-files"]
    pytest.importorskip("twine")
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", file], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
