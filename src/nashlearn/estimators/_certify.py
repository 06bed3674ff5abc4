"""Bounds of what the answers of an estimator cost on new data, from data held out: ``certify``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nashlearn.certificates import Certified, Losses, checked_confidence, mean_bounds, price_range
from nashlearn.dask.answers import gathered, refuse_costs
from nashlearn.dask.collections import is_collection

__all__ = ["CertifiedNash", "CertifiedRows", "CertifiedStructures"]


class CertifiedNash:
    """Estimators whose losses on labelled examples are bounded numbers.

    Subclasses say what may be certified: ``_certifies`` maps values of the argument ``of`` to the methods that return
    the :class:`nashlearn.certificates.Losses` of ``X`` and ``y``. The first is the default.
    """

    _certifies: ClassVar[Mapping[str, str]] = {"predict": "_losses_of_answers", "strategy": "_losses_of_strategy"}

    def certify(self, X: Any, y: Any, confidence: float = 0.95, *, of: str | None = None) -> Certified:
        """Bounds of the true mean loss of this estimator's answers, from labelled data that it has not seen.

        With probability ``confidence`` over the draw of these examples, the mean loss of all examples to come lies
        between ``lower`` and ``upper``. That holds for every distribution, if

        - the examples are drawn independently, like those to come: where data shift no bound holds;
        - the model was neither trained nor tuned on them, nor chosen by them.

        Errors, and costs of two values, have exact binomial bounds; others are bounded by betting, between the least
        and the largest cost of the loss. See :func:`nashlearn.metrics.mean_bounds`.

        Parameters
        ----------
        X, y : examples and their labels, as :meth:`task_loss` takes them
            Each counts once: there are no weights. Losses of Dask collections are gathered.
        confidence : float, default=0.95
            Between 0 and 1, both excluded.
        of : {"predict", "strategy"}, default="predict"
            Whose loss: that of the answers that :meth:`predict` gives, or the expected one of answers drawn from
            :meth:`strategy`.

        Returns
        -------
        Certified
            ``(loss, upper, lower, n)``: the mean on these examples, the bounds, and the number of examples.
        """
        return self._certified(X, y, confidence, of, {})

    def _certified(self, X: Any, y: Any, confidence: float, of: str | None, more: Mapping[str, Any]) -> Certified:
        """:meth:`certify`, with ``more`` arguments that the methods take."""
        check_is_fitted(cast(Any, self))
        checked_confidence(confidence)
        of = next(iter(self._certifies)) if of is None else of
        if of not in self._certifies:
            raise ValueError(f"of must be one of {tuple(self._certifies)}; got {of!r}.")
        method = self._certifies[of]
        values, low, high, binary = gathered(self, method, X, y, **more) if is_collection(X) else getattr(self, method)(
            X, y, **more
        )  # fmt: skip
        if values.size == 0:
            raise ValueError(f"X and y hold no example to certify {of!r} by.")
        return mean_bounds(values, low, high, confidence, binary=binary)


class CertifiedRows(CertifiedNash):
    """Estimators of one label per row: a loss is what the answer to a row costs."""

    def certify(
        self,
        X: Any,
        y: Any,
        confidence: float = 0.95,
        *,
        of: str | None = None,
        costs: Any = None,
        bounds: Any = None,
    ) -> Certified:
        """Bounds of the true mean loss of this estimator's answers, from labelled data that it has not seen.

        With probability ``confidence`` over the draw of these rows, the mean loss of all rows to come lies between
        ``lower`` and ``upper``. That holds for every distribution, if

        - the rows, their ``costs`` included, are drawn independently, like those to come: where data shift no bound
          holds;
        - the model was neither trained nor tuned on them, nor chosen by them.

        Errors, and costs of two values, have exact binomial bounds; others are bounded by betting, between the least
        and the largest cost of the loss. See :func:`nashlearn.metrics.mean_bounds`.

        Parameters
        ----------
        X, y : rows and their labels
            Each counts once: there are no weights. Losses of Dask collections are gathered.
        confidence : float, default=0.95
            Between 0 and 1, both excluded.
        of : {"predict", "strategy"}, default="predict"
            Whose loss: that of the answers that :meth:`predict` gives, or the expected one of answers drawn from
            :meth:`strategy`.
        costs : array-like of shape (n,) or (n, options, labels), optional
            Costs of these rows, as ``fit`` takes them. Answers, and what they cost, are for these.
        bounds : (low, high), needed with ``costs``
            The least and the largest cost that an answer to any row, seen or to come, can have. No sample proves
            that: the largest cost of these rows, or of the training rows, will not do, but a limit on amounts will.
            Rows with costs outside are refused, and wider bounds chosen after that were not known beforehand.

        Returns
        -------
        Certified
            ``(loss, upper, lower, n)``: the mean on these rows, the bounds, and the number of rows.
        """
        if costs is None and bounds is not None:
            raise ValueError("bounds are for costs of rows: without costs, the loss says what an answer can cost.")
        if is_collection(X):
            refuse_costs(costs)
        return self._certified(X, y, confidence, of, {} if costs is None else {"costs": costs, "bounds": bounds})

    def _all_costs(self) -> np.ndarray:
        """What any option costs for any label."""
        return cast(Any, self)._game.costs

    def _range(self, costs: Any, bounds: Any, n: int) -> tuple[float, float, bool]:
        """What a row can cost at least and at most, and whether nothing between: of the loss, or as ``bounds`` say."""
        if costs is None:
            return price_range(self._all_costs())
        try:
            low, high = map(float, bounds)
        except (TypeError, ValueError):
            raise ValueError(
                "bounds must be (low, high), the least and the largest cost of an answer to any row, known before "
                f"these rows' costs were seen; got {bounds!r:.100}."
            ) from None
        matrices, factors = cast(Any, self)._given_costs(costs, n)
        if np.ndim(costs) == 1:
            matrices = self._all_costs()[None]
        least, largest = (end(axis=(1, 2)) * factors for end in (matrices.min, matrices.max))
        outside = np.flatnonzero((least < low) | (largest > high))
        if outside.size:
            row = int(outside[0])
            raise ValueError(
                f"costs must lie within bounds, {low:g} to {high:g}; row {row} has {least[row]:g} to {largest[row]:g}."
            )
        return low, high, False

    def _losses_of_answers(self, X: Any, y: Any, costs: Any = None, bounds: Any = None) -> Losses:
        estimator: Any = self
        paid = estimator._paid(estimator._answers(X, costs), y, costs)
        return Losses(paid, *self._range(costs, bounds, paid.size))

    def _losses_of_strategy(self, X: Any, y: Any, costs: Any = None, bounds: Any = None) -> Losses:
        estimator: Any = self
        p = estimator.strategy(X, costs=costs)
        paid = [estimator._paid(np.full(len(p), option), y, costs) for option in range(p.shape[1])]
        low, high, _ = self._range(costs, bounds, len(p))
        return Losses(np.einsum("no,on->n", p, np.array(paid)), low, high)


class CertifiedStructures(CertifiedNash):
    """Estimators of structured outputs: the loss of an example is the mean over its variables with a known label.

    The certified mean is one over examples, long and short alike, whereas :meth:`task_loss` is a mean over the
    variables of all examples. Both agree where examples are equally long. Examples without a known label do not count.
    """

    def _cost_range(self) -> tuple[float, float]:
        """The least and the largest cost of a variable."""
        return 0.0, 1.0

    def _losses_of_answers(self, X: Any, y: Any) -> Losses:
        return self._shares(*cast(Any, self)._mistakes(X, y))

    def _losses_of_strategy(self, X: Any, y: Any) -> Losses:
        return self._shares(*cast(Any, self)._expected_mistakes(X, y))

    def _shares(self, losses: np.ndarray, sizes: np.ndarray) -> Losses:
        known = sizes > 0
        return Losses(losses[known] / sizes[known], *self._cost_range())
