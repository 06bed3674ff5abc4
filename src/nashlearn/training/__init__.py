"""Training: ``min_w alpha/2 |w|^2 + mean loss``, certified by its dual."""

from nashlearn.training.driver import Method, Trained, train
from nashlearn.training.problem import Problem

__all__ = ["Method", "Problem", "Trained", "train"]
