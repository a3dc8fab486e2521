"""Try the wheel: build it, install it into empty environments, run the smoke set there.

On every supported Python that is found (`pythons`), with the locked versions; where none is, on this one.

``--lowest`` tries it on the oldest supported Python instead, with the lowest versions that ``pyproject.toml`` promises,
also for the extras ``serve``, ``plots`` and ``excel`` (``.ci/lowest.txt``, which ``make lock`` writes). Newer Pythons
came later than some of these versions, which have no wheels for them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pythons import find_pythons, supported_versions

ROOT = Path(__file__).resolve().parents[1]
# Those that are tried with their lowest versions, too; `make lock` names the same.
LOWEST_EXTRAS = ("serve", "plots", "excel")


def build_wheel(folder: Path) -> Path:
    """Build the wheel into a folder, with the build tool of the Python that runs this."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def write_locked(path: Path) -> None:
    """Write the locked versions without their hashes, which pip does not take from constraints."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    path.write_text("\n".join(re.findall(r"^(\S+==.*?) *\\?$", lock, re.MULTILINE)) + "\n", encoding="utf-8")


def smoke(python: Path, wheel: str | Path, constraints: Path, folder: Path) -> bool:
    """Install the wheel and what it depends on into an empty environment, run the smoke set, tell if all passed.

    What that prints is printed in one piece, at the end.
    """
    # Nothing of the checkout or of the environment that runs this may be found instead.
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    inside = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = (inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", constraints)

    told = list[str]()

    def works(*command: str | Path) -> bool:
        pipe, both = subprocess.PIPE, subprocess.STDOUT
        ran = subprocess.run(command, cwd=folder.parent, env=clean, check=False, stdout=pipe, stderr=both, text=True)
        told.append(ran.stdout)
        return ran.returncode == 0

    installed = works(python, "-m", "venv", folder) and works(*pip, wheel)
    worked = installed and works(inside, ROOT / "tests" / "smoke" / "run.py")
    print("".join(told), end="", flush=True)
    return worked


def smoke_lowest(found: dict[str, Path], folder: Path) -> list[str]:
    """Try the wheel with the lowest versions on the oldest supported Python, and return what failed."""
    version = supported_versions()[0]
    if version not in found:
        print(f"Not found, so the lowest versions are not tried: Python {version}.", flush=True)
        return []
    print(f"The wheel with the lowest versions of what it depends on, on Python {version}", flush=True)
    wheel = f"{build_wheel(folder)}[{','.join(LOWEST_EXTRAS)}]"
    worked = smoke(found[version], wheel, ROOT / ".ci" / "lowest.txt", folder / "lowest")
    return [] if worked else [f"{version} with the lowest versions"]


def smoke_all(found: dict[str, Path], folder: Path) -> list[str]:
    """Try the wheel with the locked versions on every Python, and return those where it failed."""
    pythons = {version: found[version] for version in supported_versions() if version in found}
    absent = [version for version in supported_versions() if version not in found]
    if absent:
        print(f"Not found, so the wheel is not tried on them: Python {', '.join(absent)}.", flush=True)
    wheel = build_wheel(folder)
    write_locked(folder / "constraints.txt")
    pythons = pythons or {"{}.{}".format(*sys.version_info[:2]): Path(sys.executable)}
    print(f"The wheel on Python {', '.join(pythons)}, in empty environments", flush=True)

    def fails(version: str) -> bool:
        return not smoke(pythons[version], wheel, folder / "constraints.txt", folder / version)

    # At the same time, as much of the time is spent in waiting for files.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [version for version, failed in zip(pythons, pool.map(fails, pythons), strict=True) if failed]


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the wheel; return 0 if it works."""
    parser = argparse.ArgumentParser(description="Try the wheel in empty environments.")
    parser.add_argument("--lowest", action="store_true", help="with the lowest versions, on the oldest Python")
    tried = smoke_lowest if parser.parse_args(arguments).lowest else smoke_all
    with tempfile.TemporaryDirectory() as name:
        failed = tried(find_pythons(supported_versions()), Path(name))
    if failed:
        print(f"The wheel does not work on Python {', '.join(failed)}.", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
