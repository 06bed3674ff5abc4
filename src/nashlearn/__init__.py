"""Learning as a zero-sum game: predictors aligned with the loss that judges them, with certificates.

Everything is imported on first use, so ``import nashlearn`` costs nothing but itself.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nashlearn import datasets as datasets
    from nashlearn import games as games
    from nashlearn import metrics as metrics
    from nashlearn.estimators import *  # noqa: F403
    from nashlearn.game import Equilibrium as Equilibrium
    from nashlearn.game import Game as Game
    from nashlearn.game import Polytope as Polytope
    from nashlearn.persistence import load as load
    from nashlearn.persistence import save as save

    __version__: str

_HOMES = {
    "Equilibrium": "nashlearn.game",
    "Game": "nashlearn.game",
    "NashAbstainer": "nashlearn.estimators",
    "NashClassifier": "nashlearn.estimators",
    "NashFScore": "nashlearn.estimators",
    "NashMarkovNetwork": "nashlearn.estimators",
    "NashMatcher": "nashlearn.estimators",
    "NashOrdinalClassifier": "nashlearn.estimators",
    "NashParser": "nashlearn.estimators",
    "NashPredictor": "nashlearn.estimators",
    "NashTagger": "nashlearn.estimators",
    "Polytope": "nashlearn.game",
    "datasets": "nashlearn.datasets",
    "games": "nashlearn.games",
    "load": "nashlearn.persistence",
    "metrics": "nashlearn.metrics",
    "save": "nashlearn.persistence",
}
__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    """Import ``name`` from its room, once: later look-ups find it in the module's namespace."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("nashlearn")
    elif name in _HOMES:
        room = importlib.import_module(_HOMES[name])
        value = room if room.__name__ == f"nashlearn.{name}" else getattr(room, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
