"""Check that a tag is the version of the package, and that the changelog and the citation have it.

``python3 .ci/check_tag.py v0.1.0`` prints what disagrees, and ends with status 1 if anything does.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def find_line(root: Path, name: str, pattern: str) -> tuple[str, ...]:
    """Return the groups of the first line of a file that matches a pattern, none if no line does."""
    found = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
    return found.groups() if found else ()


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """Return what disagrees with a tag."""
    [version] = find_line(root, "src/labelrace/__init__.py", r'^__version__ = "(.+)"$')
    [cited] = find_line(root, "CITATION.cff", r"^version: (.+)$")
    days = find_line(root, "CITATION.cff", r"^date-released: [\"']?([\d-]+)[\"']?$")
    release = find_line(root, "CHANGELOG.md", r"^## (\d\S*) - (\S+)$")
    found = []
    if tag != f"v{version}":
        found.append(f"The tag is {tag}, the version in src/labelrace/__init__.py {version}.")
    if cited != version:
        found.append(f"The version in CITATION.cff is {cited}, that in src/labelrace/__init__.py {version}.")
    if release[:1] != (version,):
        found.append(f"The newest release of CHANGELOG.md is {' '.join(release[:1]) or 'none'}, not {version}.")
    elif days != release[1:]:
        found.append(f"CHANGELOG.md says {release[1]}, date-released of CITATION.cff {' '.join(days) or 'nothing'}.")
    return found


def main() -> int:
    """Check the tag that is given."""
    if len(sys.argv) != 2:
        print("Give the tag: python3 .ci/check_tag.py v0.1.0", file=sys.stderr)
        return 2
    found = problems(sys.argv[1])
    print("\n".join(found) or f"{sys.argv[1]}: version, changelog and citation agree.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
