"""Estimators with scikit-learn's interface: thin shells over the games and their training."""

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
