"""Parameters that many estimators share: what they accept."""

from __future__ import annotations

import functools
import numbers
import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, TypeVar, cast, dataclass_transform

import numpy as np
from sklearn.utils import check_random_state

from nashlearn.estimators._foreign import COMMON, advice
from nashlearn.training.progress import Round

__all__ = ["Training", "check_parameters", "number", "parameters"]

_LEAST, _MOST = 1e-100, 1e100  # of what is divided by or squared
_CHOICES: dict[str, tuple[Any, ...]] = {
    "fit_intercept": (False, True),
    "warm_start": (False, True),
    "unseen_pairs": (False, True),
    "single_root": (False, True),
    "exact": ("auto", False, True),
    "decision": ("scores", "equilibrium"),  # of parsers; rows have one more
    "propensity": ("homogeneous", "node"),
    "penalty": ("l2", "l1"),
}


T = TypeVar("T")


@dataclass_transform()
def parameters(estimator: type[T]) -> type[T]:
    """Make the annotated fields of a class, and those of its bases, the parameters of its constructor.

    Other arguments are refused with what to write instead, see :mod:`nashlearn.estimators._foreign`. The signature
    remains that of the fields, which scikit-learn reads the parameters from.
    """
    made: Any = dataclass(eq=False, repr=False)(estimator)
    own_init, known = made.__init__, [field.name for field in fields(made)]

    @functools.wraps(own_init)
    def init(self: Any, *args: Any, **given: Any) -> None:
        if said := advice(type(self).__name__, known, given, self._others_say):
            raise TypeError(said)
        own_init(self, *args, **given)

    made.__init__ = init
    return cast(type[T], made)


@parameters
class Training:
    """What every estimator is told of training."""

    _: KW_ONLY
    alpha: float = 1e-3
    tol: float = 1e-3
    max_iter: int = 1000
    warm_start: bool = False
    verbose: int = 0
    max_time: float | None = None
    checkpoint: Any = None
    callback: Callable[[Round], object] | None = None
    _others_say = COMMON

    def set_params(self, **params: Any) -> Any:
        """Set parameters, as scikit-learn's estimators do; those of other libraries are answered with what to write."""
        own = {name: value for name, value in params.items() if "__" not in name}
        estimator = cast(Any, self)
        if said := advice(type(self).__name__, estimator.get_params(deep=False), own, self._others_say):
            raise ValueError(said)
        return cast(Any, super()).set_params(**params)


def number(value: Any, name: str) -> float:
    """``value`` as a float, or an error that names the parameter."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {value!r}.")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a number that a float can hold; it is too large.") from None


def check_parameters(estimator: Any, *, auto: tuple[str, ...] = (), **choices: tuple[Any, ...]) -> None:
    """Refuse values that no training can use, naming the parameter and what it accepts.

    ``choices`` are what parameters may be that other estimators know by the same name, but with other values. Those
    named in ``auto`` may be ``"auto"`` too.
    """
    given = estimator.get_params(deep=False)
    chosen = [name for name in auto if isinstance(given[name], str)]
    for name in chosen:
        if given[name] != "auto":
            raise ValueError(f"{name} must be 'auto' or a number; got {given[name]!r}.")
    for name in {"alpha", "tol"}.difference(chosen):
        value = number(given[name], name)
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive, finite number; got {value!r}.")
    for name in {"alpha", "smoothing"}.difference(chosen):
        value = number(given.get(name, 0.0), name)
        if value != 0 and not (_LEAST <= abs(value) <= _MOST):
            raise ValueError(f"{name} must lie between {_LEAST} and {_MOST}; got {value!r}.")
    if not number(given["max_iter"], "max_iter").is_integer() or given["max_iter"] < 1:
        raise ValueError(f"max_iter must be a positive integer; got {given['max_iter']!r}.")
    if given["max_time"] is not None and not number(given["max_time"], "max_time") > 0:
        raise ValueError(f"max_time must be None or a positive number of seconds; got {given['max_time']!r}.")
    if given["callback"] is not None and not callable(given["callback"]):
        raise TypeError(f"callback must be None or callable; got {given['callback']!r}.")
    if given["checkpoint"] is not None and not isinstance(given["checkpoint"], str | os.PathLike):
        raise TypeError(f"checkpoint must be None or a path; got {given['checkpoint']!r}.")
    if not isinstance(given["verbose"], numbers.Real | np.bool_):
        raise TypeError(f"verbose must be a number; got {given['verbose']!r}.")
    jobs = given.get("n_jobs")
    if jobs is not None and (not number(jobs, "n_jobs").is_integer() or jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0; got {jobs!r}.")
    _check_choices(given, {**_CHOICES, **choices})
    try:
        check_random_state(given.get("random_state"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"random_state must be None, an integer or a RandomState: {error}.") from None


def _check_choices(given: dict[str, Any], accepted: dict[str, tuple[Any, ...]]) -> None:
    for name, choices in accepted.items():
        value = given.get(name, choices[0])
        if not isinstance(value, str | bool | np.bool_ | numbers.Integral) or value not in choices:
            raise ValueError(f"{name} must be one of {choices}; got {value!r}.")
