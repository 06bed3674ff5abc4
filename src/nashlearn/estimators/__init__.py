"""Estimators with scikit-learn's interface: thin shells over the games and their training."""

from nashlearn.estimators.abstainer import NashAbstainer
from nashlearn.estimators.classifier import NashClassifier
from nashlearn.estimators.ordinal import NashOrdinalClassifier

__all__ = ["NashAbstainer", "NashClassifier", "NashOrdinalClassifier"]
