"""Kernels as a source of Gram rows: computed by blocks when first needed, kept within a budget."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

import nashlearn.kernels.gram as kernel_rows
from nashlearn.kernels.dense_rows import Dense
from nashlearn.solvers.threads import Run, threads
from nashlearn.training.rounding import UNIT

if TYPE_CHECKING:
    from nashlearn.training.designs.tiles import Tiles

__all__ = ["Gram", "Kernel"]

_NAMED = ("rbf", "poly", "laplacian")
_INDEFINITE = 1e-8  # an eigenvalue below minus this share of the largest is no rounding
_PROBE = 500
_BESIDE = 5  # roundings beside the sums in a value of a kernel
_HIGH = 256  # rows that are copied together
_ACROSS = 1024  # columns of rows that one thread adds up at a time
_PART = 1 << 22  # bytes of rows that one thread multiplies at a time, whatever the number of threads
_WIDE = 1 << 25  # bytes of data that are held in double precision for it
_SPARE = 1 << 24  # bytes of rows that are made for a product and not kept
_NARROW = 48  # columns up to which a product reads the matrix faster by itself than linear algebra does


class Kernel:
    """A positive semidefinite kernel by name or callable, with its parameters bound to the training data.

    ``proven`` tells whether it is positive semidefinite by its form.
    """

    def __init__(self, kernel: Any, gamma: Any, degree: Any, coef0: Any, X: Any):
        self.precomputed = isinstance(kernel, str) and kernel == "precomputed"
        named = isinstance(kernel, str) and kernel in _NAMED
        if not (callable(kernel) or self.precomputed or named):
            known = f"None or 'linear', one of {_NAMED}, 'precomputed' or a callable"
            raise ValueError(f"kernel must be {known}; got {kernel!r}.")
        numeric = _is_finite(degree) and _is_finite(coef0)
        if named and kernel == "poly" and not (numeric and coef0 >= 0 and degree >= 1 and float(degree).is_integer()):
            raise ValueError(
                f"kernel 'poly' is positive semidefinite for an integer degree >= 1 and coef0 >= 0; "
                f"got degree={degree!r}, coef0={coef0!r}."
            )
        self.proven = named
        self.radial = named and kernel != "poly"  # 1 on the diagonal
        self.tiled = named and kernel != "laplacian"  # by matrix products, where rows are dense
        width = _width(gamma, X) if named else 1.0
        centre = _centre(X) if named else 0.0
        forms: dict[str, Callable[..., np.ndarray]] = {
            "rbf": partial(_gaussian, gamma=width, centre=centre),
            "poly": partial(_polynomial, gamma=width, degree=degree, coef0=coef0),
            "laplacian": partial(laplacian_kernel, gamma=width),
        }
        self._pairs: Any = kernel if callable(kernel) else forms.get(kernel)

    def bound(self, B: np.ndarray, run: Run, *, roughly: bool = False) -> Tiles:
        """The values between any rows and those of ``B``, of a kernel that is tiled, for dense rows."""
        from nashlearn.training.designs import tiles

        form = tiles.Gaussian if self.radial else tiles.Polynomial
        return form(B, run=run, roughly=roughly, **self._pairs.keywords)

    def untrue(self, X: Any, diagonal: np.ndarray) -> np.ndarray:
        """By how much rounding may have changed values: that of examples i and j by ``e_i + e_j``, as the form tells.

        ``n`` products and sums of size ``t`` in all are wrong by ``n t u`` at most [higham2002]_: exponents, which are
        differences of squared norms, bases of powers, and distances.
        """
        if not self.proven:
            return np.zeros(X.shape[0])
        terms, bound = X.shape[1] + _BESIDE, self._pairs.keywords
        if not self.radial:
            return 0.5 * bound["degree"] * terms * UNIT * diagonal
        if not self.tiled:
            return np.full(X.shape[0], 0.5 * terms * UNIT)
        exponents = bound["gamma"] * _squared_distances(X, bound["centre"])
        return np.minimum((3.0 * terms * exponents + _BESIDE) * UNIT, 1.0)

    def __call__(self, A: Any, B: Any) -> np.ndarray:
        """Values of the kernel between all rows of ``A`` and all rows of ``B``, as a dense float64 array.

        They are computed from doubles, so that predictions have the values that training had.
        """
        A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
        try:
            values = np.asarray(self._pairs(A, B), dtype=np.float64)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"kernel must take two arrays of rows and return numbers: {error}") from error
        if values.shape != (A.shape[0], B.shape[0]):
            raise ValueError(f"kernel returned shape {values.shape} for {A.shape[0]} and {B.shape[0]} rows.")
        return values


def _centre(X: Any) -> Any:
    """A point amid the rows; the origin where they are sparse, and would not be after a shift."""
    return 0.0 if sp.issparse(X) else X.mean(axis=0, dtype=np.float64)


def _squared_distances(rows: Any, centre: Any) -> np.ndarray:
    """``|row - centre|^2``; sparse rows have the origin as their centre."""
    if sp.issparse(rows):
        return np.asarray(rows.astype(np.float64).power(2).sum(axis=1)).ravel()
    from nashlearn.training.designs.tiles import squared_distances  # linear models do without

    return squared_distances(rows, centre)


def _gaussian(A: Any, B: Any, gamma: float, centre: Any = 0.0) -> np.ndarray:
    """``exp(-gamma |a - b|^2)`` for all rows of ``A`` and ``B``."""
    if sp.issparse(A) or sp.issparse(B):
        return rbf_kernel(A, B, gamma=gamma)
    from nashlearn.training.designs.tiles import Gaussian

    return Gaussian(B, gamma, centre)(A)


def _polynomial(A: Any, B: Any, gamma: float, degree: float, coef0: float) -> np.ndarray:
    """``(gamma <a, b> + coef0)^degree`` for all rows of ``A`` and ``B``."""
    if sp.issparse(A) or sp.issparse(B):
        return polynomial_kernel(A, B, gamma=gamma, degree=degree, coef0=coef0)
    from nashlearn.training.designs.tiles import Polynomial

    return Polynomial(B, gamma, degree, coef0)(A)


def _is_finite(value: Any) -> bool:
    """Whether this is a number that a float can hold."""
    try:
        return isinstance(value, numbers.Real) and bool(np.isfinite(float(value)))
    except OverflowError:
        return False


def _width(gamma: Any, X: Any) -> float:
    """``gamma`` as scikit-learn's SVC reads it: "scale" is 1 / (d var(X)), "auto" 1 / d."""
    if isinstance(gamma, str):
        if gamma not in ("scale", "auto"):
            raise ValueError(f"gamma must be 'scale', 'auto' or a positive number; got {gamma!r}.")
        if gamma == "auto":
            return 1.0 / X.shape[1]
        variance = _variance(X)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if not (_is_finite(gamma) and gamma > 0):
        raise ValueError(f"gamma must be 'scale', 'auto' or a positive number; got {gamma!r}.")
    return float(gamma)


def _variance(X: Any) -> float:
    """The variance of all entries, in double precision."""
    values, size = X.data if sp.issparse(X) else X, X.shape[0] * X.shape[1]
    mean = float(values.sum(dtype=np.float64)) / size
    absent = size - values.size  # entries that are 0
    variance = (float(_squared_distances(np.atleast_2d(values), mean).sum()) + (absent and absent * mean * mean)) / size
    if not np.isfinite(variance):
        raise ValueError("gamma='scale' needs the variance of X, which overflows: scale the features.")
    return variance


class Gram:
    """The Gram matrix of the training data plus ``bias``, by rows. At most ``cache_size`` megabytes are kept.

    Rows are kept without the bias, which products add: it may be large beside what tells examples apart.
    Threads share rows and products in parts whose size does not depend on their number, nor do then the results.
    """

    def __init__(self, kernel: Kernel, X: Any, bias: float, cache_size: float, run: Run | None = None):
        self.kernel, self.X, self.bias, self.run = kernel, X, bias, run or threads(1)
        self.n = X.shape[0]
        self.capacity = int(min(self.n, max(64, cache_size * 2**20 // (8 * self.n))))
        self._slot = np.full(self.n, -1)  # where a row is kept
        self._owner = np.full(self.capacity, -1)
        self._used = np.zeros(self.capacity, np.intp)  # round of the last use
        self._rows = np.empty((self.capacity, self.n))  # the system gives memory as rows are written
        self._round = 0
        self._pairs: Any = None
        self.diagonal = self._diagonal()

    @cached_property
    def untrue(self) -> np.ndarray:
        """By how much rounding may have changed values: that of examples i and j by ``e_i + e_j``."""
        return self.kernel.untrue(self.X, self.diagonal - self.bias)

    def _values(self, rows: np.ndarray) -> np.ndarray:
        """Rows that are not kept."""
        values = np.empty((rows.size, self.n))
        self._compute(rows, values, np.arange(rows.size))
        return values

    def between(self, rows: np.ndarray, columns: Any) -> np.ndarray:
        """The kernel between some examples and others; nothing is kept."""
        if self.kernel.precomputed:
            return self.X[rows].astype(np.float64)[:, columns]
        return self.kernel(self.X[rows], self.X[columns])

    def part(self, some: np.ndarray) -> Gram:
        """The matrix of some examples, at most ``capacity`` of them, by itself."""
        X = self.X[some][:, some] if self.kernel.precomputed else self.X[some]
        part = Gram(self.kernel, X, self.bias, 8 * some.size**2 / 2**20, self.run)
        if some.size <= part.capacity and (self._slot[some] >= 0).all():
            everything = np.arange(some.size)
            self.pick(some, some, part._rows)
            part._slot[:], part._owner[:] = everything, everything
        return part

    def _diagonal(self) -> np.ndarray:
        if self.kernel.precomputed:
            diagonal = np.diagonal(self.X).astype(np.float64)
        elif self.kernel.radial:
            diagonal = np.ones(self.n)
        else:
            step = 256  # small square blocks: a fraction of the work of the rows
            diagonal = np.concatenate(
                [np.diagonal(self.kernel(self.X[i : i + step], self.X[i : i + step])) for i in range(0, self.n, step)]
            )
        return diagonal + self.bias

    def refuse_indefinite(self, rng: np.random.Generator) -> None:
        """Raise where a principal part of the matrix has a negative eigenvalue, or is not symmetric."""
        if self.kernel.proven:
            return
        some = np.sort(rng.choice(self.n, min(_PROBE, self.n), replace=False))
        part = self.X[some][:, some] if self.kernel.precomputed else self.kernel(self.X[some], self.X[some])
        if not np.isfinite(part).all():
            raise ValueError("kernel must be finite; it has NaN or infinite values on the training data.")
        if not np.allclose(part, part.T, rtol=1e-6, atol=1e-8 * np.abs(part).max()):
            raise ValueError("kernel must be symmetric; its values on the training data are not.")
        values = np.linalg.eigvalsh(0.5 * (part + part.T))
        if values[0] < -_INDEFINITE * max(values[-1], 1e-300):
            raise ValueError(
                f"kernel must be positive semidefinite; on the training data it has the eigenvalue {values[0]:.2e} "
                f"(the largest is {values[-1]:.2e})."
            )

    def rows(self, wanted: np.ndarray) -> np.ndarray:
        """Slots of the given rows, at most ``capacity`` of them, computing in one block those that are missing."""
        self._round += 1
        self._used[self._slot[wanted][self._slot[wanted] >= 0]] = self._round
        missing = wanted[self._slot[wanted] < 0]
        if missing.size:
            slots = self._free(missing.size)
            self._compute(missing, self._rows, slots)
            self._slot[missing], self._owner[slots], self._used[slots] = slots, missing, self._round
        return self._slot[wanted]

    def fill(self) -> None:
        """Compute all rows at once, where all can be kept and none is: half of a symmetric matrix is made."""
        if self.capacity < self.n or (self._slot >= 0).any():
            return
        everything = np.arange(self.n)
        narrow = self.X.shape[1] <= self.n  # a copy in double precision takes no more room than the matrix
        if self.kernel.tiled and narrow and not sp.issparse(self.X):
            pairs = self.kernel.bound(self.X, threads(1))
            self.run(partial(self._strip, pairs), ((start,) for start in range(0, self.n, _HIGH)))
        else:
            self._compute(everything, self._rows, everything)
        self._slot[:], self._owner[:] = everything, everything

    def _strip(self, pairs: Tiles, start: int) -> None:
        """Write some rows from the diagonal on, and the columns that are the same."""
        rows, stop = self._rows, min(start + _HIGH, self.n)
        pairs(self.X[start:stop], rows[start:stop, start:], start)
        for other in range(stop, self.n, _HIGH):
            rows[other : other + _HIGH, start:stop] = rows[start:stop, other : other + _HIGH].T

    def _compute(self, rows: np.ndarray, out: np.ndarray, slots: np.ndarray) -> None:
        """Compute rows into these of ``out``, some at a time: all of them might be as large as what is kept."""
        if self.kernel.tiled and not sp.issparse(self.X):
            A, together = self.X[rows], slots[-1] - slots[0] == slots.size - 1
            for columns, pairs in self._bounds():
                if together:
                    pairs(A, out[slots[0] : slots[-1] + 1, columns])
                else:
                    pairs(A, out[:, columns], places=slots)
            return
        for start in range(0, rows.size, self._spare):
            some = slice(start, start + self._spare)
            out[slots[some]] = self.between(rows[some], slice(None))

    def _bounds(self) -> Iterator[tuple[slice, Tiles]]:
        """The kernel bound to the data, which it needs in double precision: to a part at a time where that is large."""
        step = max(1, _WIDE // (8 * (self.X.shape[1] + 2)))
        if self._pairs is not None:
            yield slice(None), self._pairs
        elif step >= self.n:
            self._pairs = self.kernel.bound(self.X, self.run)
            yield slice(None), self._pairs
        else:
            for start in range(0, self.n, step):
                yield slice(start, start + step), self.kernel.bound(self.X[start : start + step], self.run)

    def _free(self, count: int) -> np.ndarray:
        """Slots for new rows: unused ones, then those used longest ago."""
        order = np.sort(np.argsort(self._used, kind="stable")[:count])
        evicted = self._owner[order]
        self._slot[evicted[evicted >= 0]] = -1
        return order

    def product(self, V: np.ndarray) -> np.ndarray:
        """The matrix times ``V`` (n, m). As many rows as fit are kept for the next time; others are made again.

        Cost: O(n^2 m), and the kernel's values of the rows that are not kept.
        """
        some = np.flatnonzero(V.any(axis=1))
        if some.size < self.n and some.size <= self.capacity:
            return self.columns(some, V[some])
        if some.size <= self.n // 2:
            return self._few(some, V)
        free = np.flatnonzero(self._owner < 0)
        new = np.flatnonzero(self._slot < 0)[: free.size]
        if new.size:
            slots = free[: new.size]
            self._compute(new, self._rows, slots)
            self._slot[new], self._owner[slots] = slots, new
        found = np.empty((self.n, V.shape[1]))
        found[self._owner] = self._times(self._rows, V)
        others = np.flatnonzero(self._slot < 0)
        for start in range(0, others.size, self._spare):
            some = others[start : start + self._spare]
            found[some] = self._values(some) @ V
        return self._raised(found, V)

    def _raised(self, found: np.ndarray, V: np.ndarray) -> np.ndarray:
        """A product with ``V`` (.., m), to which the bias is added."""
        if self.bias:
            found += self.bias * V.sum(axis=0)
        return found

    def _times(self, rows: np.ndarray, V: np.ndarray) -> np.ndarray:
        """``rows @ V``."""
        found = np.empty((rows.shape[0], V.shape[1]))
        step = max(1, _PART // (8 * max(rows.shape[1], 1)))
        W = np.zeros((V.shape[1], V.shape[0] + 1))  # as weights of one example's scores, whose intercept is 0
        W[:, :-1] = V.T

        def part(start: int) -> None:
            some, out = rows[start : start + step], found[start : start + step]
            if V.shape[1] <= _NARROW:
                Dense(some, 0.0).all_scores(W, out)
            else:
                np.matmul(some, V, out=out)

        self.run(part, ((start,) for start in range(0, rows.shape[0], step)))
        return found

    def _few(self, some: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The columns of some examples times their rows of ``V``, where not all of them can be kept."""
        kept, others = some[self._slot[some] >= 0], some[self._slot[some] < 0]
        found = self.columns(kept, V[kept])
        for start in range(0, others.size, self._spare):
            part = others[start : start + self._spare]
            found += self._raised(self._values(part).T @ V[part], V[part])
        return found

    @property
    def _spare(self) -> int:
        """Rows that may be made beside those that are kept: no more than may be kept."""
        return max(1, min(_SPARE // (8 * self.n), self.capacity))

    def columns(self, some: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The columns of some examples, at most ``capacity`` of them, times ``V`` (some, m)."""
        slots = self.rows(some)
        found = np.zeros((V.shape[1], self.n))
        self.push(slots, V, found)
        return np.ascontiguousarray(found.T)

    def pick(self, kept: np.ndarray, columns: np.ndarray, out: np.ndarray, places: np.ndarray | None = None) -> None:
        """Write the columns of kept rows, without the bias, into these rows of ``out``, the first ones if not said."""
        slots, to = self._slot[kept], np.arange(kept.size) if places is None else places

        def part(start: int) -> None:
            some = slice(start, start + _HIGH)
            kernel_rows.pick(self._rows, slots[some], columns, to[some], out)

        self.run(part, ((start,) for start in range(0, kept.size, _HIGH)))

    def kept(self, wanted: np.ndarray) -> np.ndarray:
        """Which of these rows are kept."""
        return self._slot[wanted] >= 0

    def square(self, wanted: np.ndarray) -> np.ndarray:
        """The principal submatrix of some examples, from kept rows where there are any. No others are kept for it."""
        K, kept = np.empty((wanted.size, wanted.size)), self.kept(wanted)
        self.pick(wanted[kept], wanted, K, np.flatnonzero(kept))
        missing = np.flatnonzero(~kept)
        if missing.size:
            self.write(wanted[missing], wanted, K, missing)
        K += self.bias
        return K

    def write(
        self, rows: np.ndarray, columns: np.ndarray, out: np.ndarray, places: np.ndarray, *, roughly: bool = False
    ) -> None:
        """Write the columns of some examples, without the bias, into these rows of ``out``; nothing is kept."""
        if self.kernel.tiled and not sp.issparse(self.X):
            self.kernel.bound(self.X[columns], self.run, roughly=roughly)(self.X[rows], out, places=places)
            return
        for start in range(0, rows.size, self._spare):
            some = slice(start, start + self._spare)
            out[places[some]] = self.between(rows[some], columns)

    def push(self, slots: np.ndarray, coefficients: np.ndarray, KC: np.ndarray, lost: np.ndarray | None = None) -> None:
        """Add the kept rows times their coefficients (rows, m) to ``KC`` (m, n).

        What rounding of the sums loses is added to ``lost``, where that is given.
        """

        def part(start: int) -> None:
            kernel_rows.push(self._rows, slots, coefficients, KC, start, min(start + _ACROSS, self.n))

        if lost is None:
            self.run(part, ((start,) for start in range(0, self.n, _ACROSS)))
            level = self.bias * coefficients.sum(axis=0)[:, None]
        else:
            kernel_rows.push_exactly(self._rows, slots, coefficients, KC, lost)
            level = np.array([[self.bias * math.fsum(one)] for one in coefficients.T.tolist()])
            after = KC + level
            taken = after - KC
            lost += (KC - (after - taken)) + (level - taken)
        if self.bias:
            KC += level
