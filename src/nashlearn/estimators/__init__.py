"""Estimators with scikit-learn's interface: thin shells over the games and their training. Imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nashlearn._lazy import lazily

if TYPE_CHECKING:
    from nashlearn.estimators.abstainer import NashAbstainer
    from nashlearn.estimators.classifier import NashClassifier
    from nashlearn.estimators.fscore import NashFScore
    from nashlearn.estimators.matcher import NashMatcher
    from nashlearn.estimators.network import NashMarkovNetwork
    from nashlearn.estimators.ordinal import NashOrdinalClassifier
    from nashlearn.estimators.parser import NashParser
    from nashlearn.estimators.predictor import NashPredictor
    from nashlearn.estimators.tagger import NashTagger

__all__ = [
    "NashAbstainer",
    "NashClassifier",
    "NashFScore",
    "NashMarkovNetwork",
    "NashMatcher",
    "NashOrdinalClassifier",
    "NashParser",
    "NashPredictor",
    "NashTagger",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "NashAbstainer": f"{__name__}.abstainer",
        "NashClassifier": f"{__name__}.classifier",
        "NashFScore": f"{__name__}.fscore",
        "NashMarkovNetwork": f"{__name__}.network",
        "NashMatcher": f"{__name__}.matcher",
        "NashOrdinalClassifier": f"{__name__}.ordinal",
        "NashParser": f"{__name__}.parser",
        "NashPredictor": f"{__name__}.predictor",
        "NashTagger": f"{__name__}.tagger",
    },
)
