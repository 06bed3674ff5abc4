"""The examples in docstrings give the results that they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import nashlearn

ROOT = Path(nashlearn.__file__).parent
OPTIONAL = {"torch", "triton", "dask", "matplotlib"}


def modules() -> list[str]:
    files = (path.relative_to(ROOT.parent).with_suffix("") for path in ROOT.rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in files if path.name != "__main__")


@pytest.mark.parametrize("name", modules())
def test_examples(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"{error.name} is not installed")
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).failed == 0


@pytest.mark.parametrize("name", ["NashAbstainer", "NashClassifier", "NashOrdinalClassifier"])
def test_estimators_have_examples(name):
    found = doctest.DocTestFinder(recurse=False).find(getattr(nashlearn, name))
    assert any(test.examples for test in found)
