"""Try the wheel on the other Pythons: build it, install it into empty environments, run the smoke set there.

Called by ``.ci/run`` with the Python that ran the tests. Every version that pyproject.toml declares is looked for, on
PATH and among those that pyenv and uv installed. Where there is no other, the wheel is tried on this one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Whether it runs at all (a shim may not), and can make environments.
PROBE = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"


def supported_versions() -> list[str]:
    """Return the versions of Python that the package declares."""
    declared = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in PROJECT["classifiers"])
    return [match[1] for match in declared if match]


def candidates(versions: list[str]) -> list[Path]:
    """Return where a Python of one of the versions may be."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    found = [folder / name for folder in folders for name in ("python3", *(f"python{v}" for v in versions))]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python")
    for folder in (pyenv / "versions", uv):
        found += sorted(folder.glob("*/bin/python3"), reverse=True)
    return found


def find_pythons(versions: list[str]) -> dict[str, Path]:
    """Return a Python that runs for each version that has one."""
    found: dict[str, Path] = {}
    for path in candidates(versions):
        if not path.is_file():
            continue
        try:
            probed = subprocess.run([path, "-I", "-c", PROBE], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        version = probed.stdout.strip()
        if probed.returncode == 0 and version in versions:
            found.setdefault(version, path)
    return found


def build_wheel(folder: Path) -> Path:
    """Build the wheel into a folder, with the build tool of the Python that runs this."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def write_constraints(path: Path) -> None:
    """Write the locked versions without their hashes, which pip does not take from constraints."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    path.write_text("\n".join(re.findall(r"^(\S+==.*?) *\\?$", lock, re.MULTILINE)) + "\n", encoding="utf-8")


def smoke(python: Path, wheel: Path, constraints: Path, folder: Path) -> bool:
    """Install the wheel and what it depends on into an empty environment, run the smoke set, tell if all passed."""
    # Nothing of the checkout or of the environment that runs this may be found instead.
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    inside = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = (inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", constraints)

    def works(*command: str | Path) -> bool:
        return subprocess.run(command, cwd=folder.parent, env=clean, check=False).returncode == 0

    installed = works(python, "-m", "venv", folder) and works(*pip, wheel)
    return installed and works(inside, ROOT / "tests" / "smoke" / "run.py")


def main() -> int:
    """Try the wheel on every other Python; return 0 if it works on all."""
    this = "{}.{}".format(*sys.version_info[:2])
    versions = supported_versions()
    others = find_pythons([version for version in versions if version != this])
    absent = [version for version in versions if version not in (this, *others)]
    if absent:
        print(f"Not found, so the wheel is not tried on them: Python {', '.join(absent)}.", flush=True)
    failed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build_wheel(folder)
        write_constraints(folder / "constraints.txt")
        for version, python in sorted(others.items()) or [(this, Path(sys.executable))]:
            print(f"The wheel on Python {version}, in an empty environment", flush=True)
            if not smoke(python, wheel, folder / "constraints.txt", folder / version):
                failed.append(version)
    if failed:
        print(f"The wheel does not work on Python {', '.join(failed)}.", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
