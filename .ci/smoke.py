"""Try the wheel on the other Pythons: build it, install it into empty environments, run the smoke set there.

Called by ``.ci/run``, for every supported version that is found (`pythons`) but the oldest and the newest, which have
run all tests. Where there is no other, the wheel is tried on this one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pythons import find_pythons, supported_versions

ROOT = Path(__file__).resolve().parents[1]


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
    found = find_pythons(versions)
    absent = [version for version in versions if version not in found]
    if absent:
        print(f"Not found, so the wheel is not tried on them: Python {', '.join(absent)}.", flush=True)
    others = [version for version in versions if version in found][1:-1]
    failed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build_wheel(folder)
        write_constraints(folder / "constraints.txt")
        for version in others or [this]:
            python = found[version] if others else Path(sys.executable)
            print(f"The wheel on Python {version}, in an empty environment", flush=True)
            if not smoke(python, wheel, folder / "constraints.txt", folder / version):
                failed.append(version)
    if failed:
        print(f"The wheel does not work on Python {', '.join(failed)}.", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
