"""The package's surface: names resolve, and importing it loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import nashlearn

HEAVY = ("numpy", "sklearn", "torch", "dask", "matplotlib")


def loaded_by(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after ``code``."""
    script = f"{code}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    command = [sys.executable, "-c", script]
    return set(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split())


def test_import_loads_nothing_heavy() -> None:
    assert loaded_by("import nashlearn; dir(nashlearn); nashlearn.__version__") == set()


def test_estimators_load_no_optional_package() -> None:
    assert loaded_by("from nashlearn import NashClassifier").isdisjoint({"torch", "dask", "matplotlib"})


def test_an_estimator_imports_nothing_but_the_library_beside_scikit_learn() -> None:
    """Each module costs half a millisecond: what an import may cost is counted, not timed."""
    script = """
import sys
import sklearn.linear_model
before = set(sys.modules)
from nashlearn import NashClassifier
print(*sorted(set(sys.modules) - before))
"""
    printed = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True).stdout
    packages = [name.partition(".")[0] for name in printed.split()]
    own = packages.count("nashlearn")
    assert 20 <= own <= 220
    others = {name for name in packages if not name.startswith("_")} - {"nashlearn"} - sys.stdlib_module_names
    assert others == set()
    assert sum(name in sys.stdlib_module_names for name in packages) <= 20


def test_games_do_without_scikit_learn() -> None:
    assert "sklearn" not in loaded_by("from nashlearn import games; games.zero_one(3)")


@pytest.mark.parametrize("name", nashlearn.__all__)
def test_every_public_name_resolves_and_is_listed(name: str) -> None:
    assert getattr(nashlearn, name) is getattr(nashlearn, name)
    assert name in dir(nashlearn)


def test_version_is_that_of_the_distribution() -> None:
    assert nashlearn.__version__ == version("nashlearn")


def test_unknown_names_raise_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = nashlearn.no_such_name
