"""One driver for every method of training: it offers, saves, resumes, warns, and certifies what it returns.

A *method* is an object that says what it needs of a problem and how its state is made (``init``) and moved on
(``update``). Whatever the method, weights that it finds are offered to the same :class:`Progress`, its state is kept in
the same checkpoint, and an interrupt leaves the best weights so far.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nashlearn.training.blas import one_thread
from nashlearn.training.checkpoint import Checkpoint
from nashlearn.training.penalties import SQUARED, Penalty
from nashlearn.training.progress import Progress, Round, Watch, scaling_advice
from nashlearn.training.state import packed, unpacked

__all__ = ["Method", "Offer", "Run", "Trained", "train"]


@dataclass(frozen=True)
class Trained:
    """Weights with their certificate.

    Attributes
    ----------
    w : ndarray
        Weights, or the coefficients of a kernel model.
    Q : ndarray
        The dual point at which training stopped; of size 0 where the method keeps none.
    alpha : float
        Regularisation.
    norm : float
        ``|w|``, that of the function for kernel models; the sum of absolute values where that is penalised.
    objective, dual_gap : float
        The objective at ``w``, and its relative distance to the optimum at most.
    n_iter : int
        Iterations taken.
    rounds : list of Round
        What each has shown.
    error : float
        How wrong rounding may have made ``objective``.
    penalty : Penalty
        What was added to the mean loss.
    interrupted : bool
        Whether a key was pressed, or a callback said so.
    """

    w: np.ndarray
    Q: np.ndarray
    alpha: float
    norm: float
    objective: float
    dual_gap: float
    n_iter: int
    rounds: list[Round] = field(default_factory=list)
    error: float = 0.0
    penalty: Penalty = SQUARED
    interrupted: bool = False

    @property
    def loss(self) -> float:
        """The mean loss at ``w``, without the regulariser."""
        return self.objective - self.penalty.of_norm(self.alpha, self.norm)

    def divided(self, unit: float) -> Trained:
        """The same result of the loss divided by ``unit``, whose weights and regularised objective are too.

        ``alpha/2 |w|^2 + mean loss(w)`` is ``unit`` times ``(unit alpha)/2 |w / unit|^2 + mean loss(w) / unit``, and
        ``alpha |w|_1 + mean loss(w)`` is ``unit`` times ``alpha |w / unit|_1 + mean loss(w) / unit``. Dual points and
        what rounds have told do not change.
        """
        return replace(
            self,
            w=self.w / unit,
            alpha=self.penalty.inside(self.alpha, 1.0 / unit),
            norm=self.norm / unit,
            objective=self.objective / unit,
            error=self.error / unit,
        )


class Offer(NamedTuple):
    """Weights, the objective there, a lower bound of the optimum, and how wrong rounding may have made either."""

    w: np.ndarray
    primal: float
    dual: float
    primal_error: float = 0.0
    dual_error: float = 0.0


@dataclass
class Run:
    """What a method works on: the problem, its regularisation, what is wanted and what is known so far.

    ``start`` are results of an earlier run of the same shape, where there are any.
    """

    problem: Any
    alpha: float
    tol: float
    progress: Progress
    rng: np.random.Generator
    start: Trained | None


class Method:
    """How weights are found. Subclasses give ``needs``, ``states``, ``init`` and ``update``.

    A state is a dataclass of arrays and numbers (:mod:`nashlearn.training.state`) with a class attribute ``phase``, its
    name in checkpoints, and a field ``over``, true once no update would help.
    """

    needs: ClassVar[tuple[str, ...]]  # attributes that a problem must have
    states: ClassVar[tuple[type, ...]]  # classes of the states that the method goes through
    unit: ClassVar[str] = "iterations"  # what ``n_iter`` counts
    penalty: ClassVar[Penalty] = SQUARED  # what is added to the mean loss

    def init(self, run: Run) -> tuple[Any, Offer | None]:
        """The first state, and what it has to offer."""
        raise NotImplementedError

    def update(self, run: Run, state: Any) -> tuple[Any, Offer | None]:
        """The next state, and what it has to offer; ``state`` may be overwritten. Counts the iterations it takes."""
        raise NotImplementedError

    def resumed(self, run: Run, state: Any) -> None:
        """Make ready what a checkpoint does not hold."""

    def finish(self, run: Run, state: Any) -> None:
        """Take a last look at the best weights."""

    def rescue(self, run: Run, state: Any) -> Offer | None:
        """What to offer after an interrupt besides the best so far; ``state`` is None before there was one.

        As a rule the weights to start from, where there are no others, evaluated without smoothing.
        """
        if run.progress.w.size:
            return None
        w = np.zeros(self.shape(run.problem)) if run.start is None else run.start.w
        return Offer(w, self.penalised(run, w) + run.problem.evaluate(w, 0.0).loss, -np.inf)

    def penalised(self, run: Run, w: np.ndarray) -> float:
        """What is added to the mean loss at ``w``."""
        return self.penalty.value(run.alpha, w)

    def shape(self, problem: Any) -> tuple[int, ...]:
        """Shape of the weights."""
        return (problem.n_weights,)

    def norm(self, problem: Any, w: np.ndarray) -> float:
        """``|w|``."""
        return self.penalty.norm(w)

    def dual_point(self, state: Any) -> np.ndarray:
        """Where the dual stands, for a later run to start from."""
        return np.empty((0, 0))

    def goal(self, problem: Any, tol: float) -> float:
        """The gap to train to where ``tol`` is asked for."""
        return tol

    def threads(self, problem: Any) -> AbstractContextManager[None]:
        """In which to run: one thread of linear algebra for each of our own, so that all numbers of them agree."""
        return one_thread()

    def advice(self, run: Run, scaling: Callable[[], str]) -> str:
        """What could be done about a gap above ``tol``: which limit to raise, and by how much."""
        return f"Raise {run.progress.longer(run.tol, self.unit) or 'tol'}, or alpha, or {scaling()}."


def train(
    problem: Any,
    method: Method,
    *,
    tol: float,
    max_iter: int,
    alpha: float | None = None,
    start: Trained | np.ndarray | None = None,
    random_state: np.random.Generator | None = None,
    verbose: int = 0,
    max_time: float | None = None,
    callback: Callable[[Round], object] | None = None,
    checkpoint: Checkpoint | None = None,
    advice: Callable[[], str] = scaling_advice,
    unit: float = 1.0,
    watch: Watch | None = None,
) -> Trained:
    """Minimise the method's penalty plus the mean loss to a relative duality gap of ``tol``, or warn.

    The penalty is ``alpha/2 |w|^2`` unless the method has another one.

    ``problem`` and ``alpha`` are in the units of the game. Whoever watches is told of, and gets, the result of the loss
    divided by ``unit``, see :meth:`Trained.divided`; ``start`` is in those units too.

    Parameters
    ----------
    problem
        Whatever has the attributes that the method needs.
    method : Method
    tol, max_iter, max_time, verbose, callback, checkpoint
        See :class:`nashlearn.training.progress.Progress` and :class:`nashlearn.training.checkpoint.Checkpoint`.
    alpha : float, optional
        Regularisation; that of the problem where it has its own.
    start : Trained or ndarray, optional
        An earlier result, or weights, to start from where it fits.
    random_state : Generator, optional
    advice : callable
        Returns what to say about the scale of the features if training fails.
    unit : float
        Positive.
    watch : callable, optional
        Called after each round with it and with the best weights so far; returns what to print besides.
    """
    lacking = [name for name in method.needs if not hasattr(problem, name)]
    if lacking:
        raise TypeError(
            f"{type(method).__name__} needs a problem with {', '.join(method.needs)}; "
            f"{type(problem).__name__} has no {', '.join(lacking)}."
        )
    progress = Progress(
        method.goal(problem, tol),
        max_iter,
        verbose,
        max_time=max_time,
        callback=callback,
        bound=0.0 if problem.complete else -np.inf,  # costs are not negative, and so is no loss of a known label
        unit=unit,
        remark=method.penalty.remark,
        watch=watch,
    )
    rng = np.random.default_rng() if random_state is None else random_state
    alpha = problem.alpha if alpha is None else alpha
    run = Run(problem, alpha, tol, progress, rng, _fitting(start, method, method.shape(problem), alpha, unit))
    state: Any = None
    interrupted = False
    try:
        with method.threads(problem), progress.watched():
            state = _saved(run, method, checkpoint)
            if state is None:
                state = _step(run, method.init(run), checkpoint)
            while not (progress.done or state.over):
                state = _step(run, method.update(run, state), checkpoint)
            method.finish(run, state)
    except KeyboardInterrupt:
        if (offer := method.rescue(run, state)) is not None:
            progress.keep(*offer)
        interrupted = True
        progress.interrupted()
    progress.warn_unless(tol, lambda: "" if interrupted else method.advice(run, advice), method.unit)
    w, Q = progress.w, method.dual_point(state)
    found = Trained(
        w, Q, alpha, method.norm(problem, w), progress.primal, progress.gap, progress.n_iter, progress.rounds,
        error=progress.primal_error, penalty=method.penalty, interrupted=interrupted,
    )  # fmt: skip
    return found if unit == 1.0 else found.divided(unit)  # there may be millions of weights


def _fitting(
    start: Trained | np.ndarray | None, method: Method, shape: tuple[int, ...], alpha: float, unit: float
) -> Trained | None:
    """An earlier result where it has this shape: that of other features, or of a kernel with other rows, has not."""
    if isinstance(start, np.ndarray):
        w, own = start.astype(np.float64), method.penalty
        of_start = own.inside(alpha, 1.0 / unit)
        start = Trained(w, np.empty((0, 0)), of_start, own.norm(w), np.inf, np.inf, 0, penalty=own)
    return start.divided(1.0 / unit) if start is not None and start.w.shape == shape else None


def _step(run: Run, found: tuple[Any, Offer | None], checkpoint: Checkpoint | None) -> Any:
    """Tell what a step has found, and save the state where that is due."""
    (state, offer), progress = found, run.progress
    if offer is not None:
        progress.offer(*offer)
    if checkpoint is not None and (progress.done or state.over or checkpoint.due()):
        of_phase = {f"of_{name}": array for name, array in packed(state).items()}
        own = {"phase": state.phase, "rng": json.dumps(run.rng.bit_generator.state), **progress.state}
        checkpoint.save({**own, **of_phase})
    return state


def _saved(run: Run, method: Method, checkpoint: Checkpoint | None) -> Any:
    """The state in the file of this run, with all that was known then; None where there is no file."""
    if checkpoint is None or (saved := checkpoint.load()) is None:
        return None
    kinds = {kind.phase: kind for kind in method.states}  # type: ignore[attr-defined]
    if str(saved["phase"]) not in kinds:
        raise ValueError(f"The checkpoint {checkpoint.path} is of another method. Remove it, or choose another path.")
    run.progress.restore(saved)
    run.rng.bit_generator.state = json.loads(str(saved["rng"]))
    state: Any = unpacked(kinds[str(saved["phase"])], saved.under("of_"))
    state.over = False  # a smaller tol may ask for more
    if not run.progress.done:
        method.resumed(run, state)
    return state
