"""Print the oldest versions that pyproject.toml allows, as constraints for pip: ``oldest_versions.py [EXTRA ...]``.

Those of the package itself and of the named extras. ``make test-oldest`` tests with them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?>=(?P<version>[0-9.]+)(;.*)?")


def oldest(extras: list[str]) -> Iterator[str]:
    """Constraints ``name==version``; an error where a dependency has no lower bound."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    for requirement in wanted:
        parts = _REQUIREMENT.fullmatch(requirement)
        if parts is None:
            raise ValueError(f"{requirement!r} in {PYPROJECT.name} has no lower bound of the form name>=version.")
        yield f"{parts['name']}=={parts['version']}"


if __name__ == "__main__":
    print("\n".join(sorted(set(oldest(sys.argv[1:])))))
