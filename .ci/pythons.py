"""Find the supported Pythons of this machine: on PATH, and among those that pyenv and uv installed.

``python3 .ci/pythons.py`` prints the oldest and the newest of them, which ``.ci/run`` runs all tests on.
"""

from __future__ import annotations

import os
import re
import subprocess
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


def main() -> None:
    """Print the oldest and the newest supported Python that is found, once if it is the same."""
    found = find_pythons(supported_versions())
    by_version = [str(found[version]) for version in supported_versions() if version in found]
    print("\n".join(dict.fromkeys([by_version[0], by_version[-1]])))


if __name__ == "__main__":
    main()
