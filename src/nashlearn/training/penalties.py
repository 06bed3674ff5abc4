"""Penalties on the weights, and the sets of moments that they stand for.

An adversary whose moments may differ from those of the data by no more than ``alpha`` in some norm makes the predictor
pay ``alpha`` times the dual norm of the weights ([li2022]_, Proposition 1):

    max { mean H(q_i) : |mean Phi_i'(q_i - y_i)|_inf <= alpha }  =  min_w alpha |w|_1 + mean loss.

With half the square of the Euclidean norm in place of a norm the moments are free, and their distance is paid for:

    max mean H(q_i) - |mean Phi_i'(q_i - y_i)|^2 / (2 alpha)     =  min_w alpha/2 |w|^2 + mean loss.

A penalty knows its value, and what ``alpha`` becomes where losses and weights are divided by a unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

__all__ = ["ABSOLUTE", "SQUARED", "Absolute", "Penalty", "Squared"]


class Penalty(Protocol):
    """What is added to the mean loss."""

    def norm(self, w: np.ndarray) -> float:
        """The norm of the weights, dual to that in which distances between moments are measured."""
        ...

    def value(self, alpha: float, w: np.ndarray) -> float:
        """The penalty of the weights."""
        ...

    def of_norm(self, alpha: float, norm: float) -> float:
        """That of weights of this norm."""
        ...

    def slope(self, alpha: float, w: np.ndarray) -> np.ndarray | float:
        """The gradient of its smooth part; 0 where it has none."""
        ...

    def remark(self, w: np.ndarray) -> str:
        """What to say of the weights beside their objective."""
        ...

    def inside(self, alpha: float, unit: float) -> float:
        """What regularises a loss if ``alpha`` does so for the loss, and the weights, divided by ``unit``."""
        ...


@dataclass(frozen=True)
class Squared:
    """``alpha/2 |w|^2``: the Euclidean distance between moments is paid for."""

    def norm(self, w: np.ndarray) -> float:
        return float(np.linalg.norm(w))

    def value(self, alpha: float, w: np.ndarray) -> float:
        return 0.5 * alpha * float(np.vdot(w, w))

    def of_norm(self, alpha: float, norm: float) -> float:
        return 0.5 * alpha * norm**2

    def slope(self, alpha: float, w: np.ndarray) -> np.ndarray:
        return alpha * w

    def remark(self, w: np.ndarray) -> str:
        return ""

    def inside(self, alpha: float, unit: float) -> float:
        return alpha / unit


@dataclass(frozen=True)
class Absolute:
    """``alpha |w|_1``: moments lie in a box of half-width ``alpha`` around those of the data."""

    def norm(self, w: np.ndarray) -> float:
        return float(np.abs(w).sum())

    def value(self, alpha: float, w: np.ndarray) -> float:
        return alpha * self.norm(w)

    def of_norm(self, alpha: float, norm: float) -> float:
        return alpha * norm

    def slope(self, alpha: float, w: np.ndarray) -> float:
        return 0.0

    def remark(self, w: np.ndarray) -> str:
        return f"nonzero {np.count_nonzero(w)} of {w.size}"

    def inside(self, alpha: float, unit: float) -> float:
        return alpha


SQUARED: Penalty = Squared()
ABSOLUTE: Penalty = Absolute()
