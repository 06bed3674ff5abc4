"""Learning as a zero-sum game: predictors aligned with the loss that judges them, with certificates.

Everything is imported on first use, so ``import nashlearn`` costs nothing but itself.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nashlearn import datasets, games
    from nashlearn.estimators import (
        NashAbstainer,
        NashClassifier,
        NashMarkovNetwork,
        NashMatcher,
        NashOrdinalClassifier,
        NashParser,
        NashPredictor,
        NashTagger,
    )
    from nashlearn.game import Equilibrium, Game, Polytope
    from nashlearn.persistence import load, save

    __version__: str

__all__ = [
    "Equilibrium",
    "Game",
    "NashAbstainer",
    "NashClassifier",
    "NashMarkovNetwork",
    "NashMatcher",
    "NashOrdinalClassifier",
    "NashParser",
    "NashPredictor",
    "NashTagger",
    "Polytope",
    "__version__",
    "datasets",
    "games",
    "load",
    "save",
]

_HOMES = {
    "Equilibrium": "nashlearn.game",
    "Game": "nashlearn.game",
    "NashAbstainer": "nashlearn.estimators",
    "NashClassifier": "nashlearn.estimators",
    "NashMarkovNetwork": "nashlearn.estimators",
    "NashMatcher": "nashlearn.estimators",
    "NashOrdinalClassifier": "nashlearn.estimators",
    "NashParser": "nashlearn.estimators",
    "NashPredictor": "nashlearn.estimators",
    "NashTagger": "nashlearn.estimators",
    "Polytope": "nashlearn.game",
    "load": "nashlearn.persistence",
    "save": "nashlearn.persistence",
}


_ROOMS = ("datasets", "games")


def __getattr__(name: str) -> Any:
    """Import ``name`` from its room, once: later look-ups find it in the module's namespace."""
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _ROOMS:
        return importlib.import_module(f"nashlearn.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("nashlearn")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
