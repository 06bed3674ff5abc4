"""Learning as a zero-sum game: predictors aligned with the loss that judges them, with certificates.

Everything is imported on first use, so ``import nashlearn`` costs nothing but itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nashlearn._lazy import lazily

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
_find, _dir = lazily(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name != "__version__":
        return _find(name)
    from importlib.metadata import version

    globals()[name] = found = version("nashlearn")
    return found


def __dir__() -> list[str]:
    return sorted({*_dir(), "__version__"})
