"""What is compared: this library's estimators and live baselines, all built from (alpha, gamma, n, tol).

``alpha`` multiplies |w|^2 / 2 against the mean loss, so that C = 1 / (n alpha). Ours divide their loss by the largest
cost, so theirs is times that; they play the papers' game, without smoothing and with a constant feature of 1. Packages
are imported when built.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["METHODS", "Method"]

Build = Callable[[float, float, int, float], Any]
ABSTAIN = -1


def _predict(model: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(model.predict(X)).astype(int)


@dataclass(frozen=True)
class Method:
    """A column: how its model is made, which grid tunes it, and how it answers (ranks of classes, or ABSTAIN)."""

    build: Build
    grid: str
    kernel: bool = False
    answer: Callable[[Any, np.ndarray], np.ndarray] = _predict
    warm: bool = False
    package: str = "nashlearn"
    note: str = ""
    largest: Callable[[int], float] = lambda k: 1.0  # cost, for k classes

    @property
    def available(self) -> bool:
        """Whether the package that it needs is installed."""
        return importlib.util.find_spec(self.package) is not None

    def alpha(self, strength: float, n: int, k: int) -> float:
        """The regularisation that a value of the grid stands for, given the numbers of rows and of classes."""
        return self.largest(k) * (strength if self.grid == "lambda" else 1.0 / (n * strength))


def _nash(name: str, *args: Any, kernel: bool = False, **fixed: Any) -> Build:
    def build(alpha: float, gamma: float, n: int, tol: float) -> Any:
        how = {"kernel": "rbf", "gamma": gamma, **fixed} if kernel else fixed
        estimator = getattr(importlib.import_module("nashlearn"), name)
        papers = {"smoothing": 0.0, "intercept_scaling": 1.0}
        return estimator(*args, alpha=alpha, tol=tol, warm_start=True, random_state=0, **papers, **how)

    return build


def _peer(module: str, name: str, kernel: bool = False, strength: str = "C", **fixed: Any) -> Build:
    def build(alpha: float, gamma: float, n: int, tol: float) -> Any:
        how = {strength: 1.0 / (n * alpha) if strength == "C" else n * alpha}
        if kernel:
            how["gamma"] = gamma
        return getattr(importlib.import_module(module), name)(**how, **fixed)

    return build


def _one_vs_rest(alpha: float, gamma: float, n: int, tol: float) -> Any:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    return OneVsRestClassifier(SVC(C=1.0 / (n * alpha), gamma=gamma))


def _may_abstain(model: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(model.predict_or_abstain(X)).astype(int)


def _positive_or_abstain(model: Any, X: np.ndarray) -> np.ndarray:
    """One-vs-all abstains where no class has a positive score (Ramaswamy et al. 2018, tau = 0)."""
    scores = model.decision_function(X)
    return np.where(scores.max(axis=1) > 0.0, model.classes_[scores.argmax(axis=1)], ABSTAIN)


def _ahead_or_abstain(model: Any, X: np.ndarray) -> np.ndarray:
    """Crammer-Singer abstains where the best score leads by less than 1/2 (Ramaswamy et al. 2018, tau = 1/2)."""
    scores = model.decision_function(X)
    second, best = np.sort(scores, axis=1)[:, -2:].T
    return np.where(best - second > 0.5, model.classes_[scores.argmax(axis=1)], ABSTAIN)


_CS = _peer("sklearn.svm", "LinearSVC", multi_class="crammer_singer", tol=0.1, random_state=0)
_SHORT = "C up to 64"
_OVA = _peer("sklearn.svm", "LinearSVC", loss="hinge", tol=0.01, max_iter=1000, random_state=0)
_LIBLINEAR = "LinearSVC, Crammer–Singer; its cost grows with C and it heeds no limit, so the grid ends at 64"

METHODS: dict[str, Method] = {
    "al01": Method(_nash("NashClassifier", "zero_one"), "C", warm=True),
    "al01-rbf": Method(
        _nash("NashClassifier", "zero_one", kernel=True, fit_intercept=False), "C", kernel=True, warm=True
    ),
    "cs": Method(_CS, _SHORT, package="sklearn", note=_LIBLINEAR),
    "logistic": Method(
        _peer("sklearn.linear_model", "LogisticRegression", tol=1e-3, max_iter=300), "C", package="sklearn"
    ),
    "svc-rbf": Method(
        _peer("sklearn.svm", "SVC", kernel=True), "C", kernel=True, package="sklearn", note="SVC, 1-vs-1"
    ),
    "ord-th": Method(_nash("NashOrdinalClassifier", decision="scores"), "lambda", warm=True),
    "ord-mc": Method(
        _nash("NashClassifier", "absolute", decision="scores"),
        "lambda",
        warm=True,
        largest=lambda k: k - 1.0,
    ),
    "ord-th-rbf": Method(_nash("NashOrdinalClassifier", kernel=True, decision="scores"), "C", kernel=True, warm=True),
    "mord-at": Method(
        _peer("mord", "LogisticAT", strength="alpha"), "lambda", package="mord", note="mord LogisticAT, logistic loss"
    ),
    "mord-it": Method(
        _peer("mord", "LogisticIT", strength="alpha"), "lambda", package="mord", note="mord LogisticIT, logistic loss"
    ),
    "svorex-rbf": Method(
        _peer("skordinal.classifiers", "SVOR", kernel=True, constraints="explicit"),
        "C",
        kernel=True,
        package="skordinal",
        note="skordinal SVOR, explicit constraints",
    ),
    "svorim-rbf": Method(
        _peer("skordinal.classifiers", "SVOR", kernel=True, constraints="implicit"),
        "C",
        kernel=True,
        package="skordinal",
        note="skordinal SVOR, implicit constraints",
    ),
    "redsvm-rbf": Method(
        _peer("skordinal.classifiers", "REDSVM", kernel=True), "C", kernel=True, package="skordinal", note="REDSVM"
    ),
    "abstain": Method(_nash("NashAbstainer", 0.5), "C", answer=_may_abstain, warm=True),
    "abstain-rbf": Method(
        _nash("NashAbstainer", 0.5, kernel=True, fit_intercept=False), "C", kernel=True, answer=_may_abstain, warm=True
    ),
    "ova-abstain": Method(_OVA, "C", answer=_positive_or_abstain, package="sklearn", note="LinearSVC, hinge, tau = 0"),
    "cs-abstain": Method(_CS, _SHORT, answer=_ahead_or_abstain, package="sklearn", note=f"{_LIBLINEAR}, tau = 1/2"),
    "ova-abstain-rbf": Method(
        _one_vs_rest, "C", kernel=True, answer=_positive_or_abstain, package="sklearn", note="SVC, 1-vs-rest, tau = 0"
    ),
}
