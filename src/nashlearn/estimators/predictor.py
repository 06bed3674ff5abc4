"""Learning to play any game: also one of a user's own polytopes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from nashlearn.certificates import Certified, Losses
from nashlearn.dask.answers import lazily
from nashlearn.equilibrium import best_vertices
from nashlearn.estimators._entries import EntryNash
from nashlearn.estimators._parameters import parameters
from nashlearn.estimators._structured import Facts, Units, example_weights
from nashlearn.game import Game, flat, inner
from nashlearn.games.batch import Batch
from nashlearn.training.designs.entries import EntryFeatures, stacked
from nashlearn.training.driver import Method
from nashlearn.training.methods.bundle import Bundle
from nashlearn.training.methods.descent import Descent
from nashlearn.training.objective import GameProblem
from nashlearn.training.played import SETTLED

__all__ = ["NashPredictor"]

_STEPS = 50  # towards a label that is no vertex, in search of a direction in which it lies beyond all


class _Examples(NamedTuple):
    """Features of the entries of all examples, their games, the vertices of their labels, and their weights."""

    features: list[Any]
    games: Batch
    truth: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class GameFacts(Facts):
    """The number of features, whether all games smooth, the size of losses, and the rule of predictions.

    ``total`` counts examples. ``free`` says whether labels are options, and the right one costs nothing.

    ``scale`` is the largest value of a game without scores, 1 at least, and ``unit`` that for each entry of a vertex.
    """

    width: int
    smooths: bool
    scale: float
    unit: float
    free: bool

    def __add__(self, other: GameFacts) -> GameFacts:
        if self.width != other.width:
            raise ValueError(f"Partitions of X differ: {self.width} features in one, {other.width} in another.")
        return GameFacts(
            self.total + other.total,
            self.width,
            self.smooths and other.smooths,
            max(self.scale, other.scale),
            max(self.unit, other.unit),
            self.free and other.free,
        )


@parameters
class NashPredictor(EntryNash):
    """Outputs of any kind, trained for the loss of any game, with a certificate.

    The scores of an example are linear in features of their entries, ``theta = X_i @ w``, and its loss is that of the
    game, ``F(theta) - <theta, y>``: convex, and no less than what the predictor's strategy loses. The game may be one
    of :mod:`nashlearn.games` or ``Game(labels, options, loss)`` of polytopes of your own, of which training needs no
    more than their best vertices.

    Parameters
    ----------
    game : Game, or callable
        The game of every example; or a function that returns the game of examples of a size, from the shape of their
        features without the last axis: ``game(dim)`` for features (dim, d), ``game(n, m)`` for (n, m, d).
    alpha : float, default=1e-3
        Multiplies half the squared norm of the weights, against the mean loss of an example.
    smoothing : float, default=0.0
        Smoothing of the game, part of the model, in units of the loss. Games known by their best vertices alone have
        none. Without it, a game that can smooth is trained through smoother ones, and others by cutting planes;
        ``dual_gap_`` is that of the game itself.
    tol : float, default=1e-3
        Relative duality gap to train to.
    max_iter : int, default=1000
        Iterations, in all.
    warm_start : bool, default=False
        Start from the weights of the last fit.
    n_jobs : int, optional
        Threads. The result does not depend on their number.
    verbose : int, default=0
        Print a line for each iteration where positive.
    max_time : float, optional
        Seconds of training after which it ends at the best weights so far.
    checkpoint : path-like, optional
        File in which training keeps its state, every few seconds and at its end. A fit that finds the file of its own
        game, data and parameters goes on from there; one of others is refused. See
        :mod:`nashlearn.training.checkpoint`.
    callback : callable, optional
        Called after each round with a :class:`nashlearn.training.progress.Round`. A KeyboardInterrupt, also one that
        it raises, ends training at the best weights so far.

    Attributes
    ----------
    coef_ : ndarray (d,)
        Weights of the features.
    decision_ : {"scores", "equilibrium"}
        Whether ``predict`` returns the best label by the scores, or the option that the strategy ``p`` plays most. By
        the scores where both players share one polytope, ``game.options is game.labels``, and no label of training
        costs anything where it is predicted: elsewhere scores can be wrong with any amount of data.
    objective_, dual_gap_, n_iter_ : float, float, int
        The objective, its proven relative distance from the optimum, and the iterations taken.
    history_ : list of Round
        The certificate over time: (n_iter, seconds, objective, bound, gap) after each round.

    Notes
    -----
    ``X`` is a list with, for each example, features (dim, d) of the entries of its scores, as an array or a sparse
    matrix, ``dim`` being the product of ``game.shape``; or an array (\\*game.shape, d). ``y`` is a list of labels,
    whatever ``game.labels.vertex`` takes, one for each example.

    Examples
    --------
    >>> import numpy as np
    >>> from nashlearn import NashPredictor, games
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 4, 4, 2))
    >>> game = games.matching(4)
    >>> y = game.argmax(X @ [1.0, -1.0])
    >>> model = NashPredictor(game, alpha=1e-2).fit(X, y)
    >>> model.task_loss(X, y) < 0.5, model.dual_gap_ < 1e-3
    (True, True)
    """

    _certifies: ClassVar = {"predict": "_bounded_losses", "strategy": "_bounded_losses_of_strategy"}
    _accurate = 1e-9
    _stages = (0.1, 0.02, 0.004, 8e-4, 1.6e-4, 3.2e-5)  # of smoothing, in units of the loss of an entry

    game: Game | Callable[..., Game]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (hasattr(self.game, "solve") or callable(self.game)):
            raise TypeError(f"game must be a Game, or a function that returns one; got {self.game!r:.100}.")

    def _games(self, features: list[Any]) -> Batch:
        """The game of each example, made once for each shape, after a check that its scores have these entries."""
        given: Any = self.game
        game_of: Callable[..., Game] = cache((lambda *_: given) if hasattr(given, "solve") else given)
        found = [game_of(*x.shape[:-1]) for x in features]
        for i, (x, game) in enumerate(zip(features, found, strict=True)):
            if not hasattr(game, "solve"):
                raise TypeError(f"game must return a Game for the shape {x.shape[:-1]} of X[{i}]; got {game!r:.100}.")
            entries, shape = x.shape[:-1], tuple(game.shape)
            if entries not in ((math.prod(shape),), shape):
                wanted = " or ".join(f"({', '.join(map(str, (*s, 'd')))})" for s in {(math.prod(shape),): 0, shape: 0})
                raise ValueError(
                    f"X[{i}] must have features of shape {wanted}, one row for each entry of the scores of its game; "
                    f"got {x.shape}."
                )
        return Batch(found)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> _Examples:
        features = _features(X)
        games = self._games(features)
        return _Examples(features, games, _vertices(y, games), example_weights(sample_weight, len(features)))

    def _facts(self, data: _Examples) -> GameFacts:
        games = list({id(game): game for game in data.games.games}.values())
        smooths = all(game.smooths for game in games)
        if self.smoothing and not smooths:
            rigid = next(game for game in games if not game.smooths)
            raise ValueError(
                f"smoothing must be 0: {type(rigid).__name__} has no smoothed solver; got {self.smoothing!r}."
            )
        zeros = [np.zeros((1, *game.shape)) for game in games]
        values = [float(game.solve(zero).value[0]) for game, zero in zip(games, zeros, strict=True)]
        sizes = [float(np.abs(best_vertices(game, zero)).sum()) for game, zero in zip(games, zeros, strict=True)]
        unit = max(value / max(size, 1.0) for value, size in zip(values, sizes, strict=True))
        width, scale = data.features[0].shape[-1], max(*values, 1.0)
        free = all(
            game.options is game.labels and abs(game.task_loss(truth[None], truth[None])[0]) <= 1e-9 * scale
            for game, truth in zip(data.games.games, data.games.split(data.truth), strict=True)
        )
        return GameFacts(float(data.weight.sum()), width, smooths, scale, unit or 1.0, free)

    def _problem(self, data: _Examples, facts: GameFacts, sums: Any) -> GameProblem:
        design, omega = EntryFeatures([stacked(data.features)], data.games.offset), data.weight / facts.total
        moments = design.moments(data.truth, omega)
        return GameProblem(design, data.games, moments, omega, tol=self._accurate * facts.scale, n_jobs=self.n_jobs)

    def _method(self, problem: Any, facts: GameFacts) -> Method:
        if not facts.smooths:
            return Bundle()
        target = self._units(facts).smoothing
        return Descent([mu for mu in (facts.unit * stage for stage in self._stages) if mu > target] + [target], target)

    def _units(self, facts: GameFacts) -> Units:
        return Units(1.0, float(self.smoothing))

    def _store(self, w: np.ndarray, facts: GameFacts, problem: Any) -> None:
        self.coef_, self._scale = w, facts.scale
        self.decision_ = "scores" if facts.free else "equilibrium"

    def _accuracy(self) -> float:
        return SETTLED * self._scale

    def _variables(self, game: Any) -> float:
        return self._scale  # the loss of an example, whatever its parts

    def _scored(self, X: Any) -> tuple[Batch, np.ndarray]:
        check_is_fitted(self)
        features = _features(X)
        if features[0].shape[-1] != self.coef_.size:
            raise ValueError(f"X has {features[0].shape[-1]} features, but the weights are of {self.coef_.size}.")
        games = self._games(features)
        return games, EntryFeatures([stacked(features)], games.offset).scores(self.coef_)

    @lazily
    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Scores ``X_i @ coef_`` of each example, in the shape of its game."""
        games, scores = self._scored(X)
        return games.split(scores)

    @lazily
    def predict(self, X: Any) -> list[Any]:
        """An option for each example: its best label by the scores, or ``game.options.argmax(p)``.

        Which one, ``decision_`` says.
        """
        return self._predictions(*self._scored(X))

    def _predictions(self, games: Batch, scores: np.ndarray) -> list[Any]:
        if self.decision_ == "scores":
            return games.argmax(scores)
        pairs = zip(games.games, self._strategies(games, scores), strict=True)
        return [game.options.argmax(p[None])[0] for game, p in pairs]

    @lazily
    def strategy(self, X: Any) -> list[np.ndarray]:
        """The predictor's equilibrium strategy ``p`` of each example, whose loss :meth:`worst_case_risk` bounds.

        Warns
        -----
        ConvergenceWarning
            Where a game is not settled to 1e-8 of its size.
        """
        return self._strategies(*self._scored(X))

    @lazily
    def predict_proba(self, X: Any) -> list[np.ndarray]:
        """How probable each part of an option is in the strategy ``p``; see :meth:`strategy`. Not calibrated."""
        return self.strategy(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus :meth:`task_loss`: the larger the better."""
        return -self.task_loss(X, y, sample_weight)

    def _mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """``<prediction, L y>`` of each example."""
        games, scores = self._scored(X)
        truth = games.split(_vertices(y, games))
        cases = zip(games.games, self._predictions(games, scores), truth, strict=True)
        lost = [game.task_loss(game.options.vertex(np.asarray(own)[None]), q[None])[0] for game, own, q in cases]
        return np.array(lost, dtype=np.float64), np.ones(len(lost))

    def _expected_mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        games, scores = self._scored(X)
        cases = zip(games.games, self._strategies(games, scores), games.split(_vertices(y, games)), strict=True)
        lost = [game.task_loss(p[None], q[None])[0] for game, p, q in cases]
        return np.array(lost, dtype=np.float64), np.ones(len(lost))

    def certify(
        self, X: Any, y: Any, confidence: float = 0.95, *, of: str | None = None, bounds: Any = None
    ) -> Certified:
        """As :meth:`NashTagger.certify`, of the mean loss of an example, in the units of the game.

        Parameters
        ----------
        X, y, confidence, of
            As there.
        bounds : (low, high), optional
            What an example can lose at least and at most. Needed where ``game`` is a function, as games of examples
            to come may be larger, and where the game does not say: see ``loss_bounds`` of :class:`nashlearn.Game`.
        """
        check_is_fitted(self)
        known: Any = getattr(self.game, "loss_bounds", None)
        found = bounds if bounds is not None or known is None else known()
        try:
            low, high = map(float, found)
        except (TypeError, ValueError):
            raise ValueError(
                "bounds must be (low, high), what an example can lose at least and at most: the game does not say; got "
                f"{bounds!r}."
            ) from None
        return self._certified(X, y, confidence, of, {"bounds": (low, high)})

    def _bounded_losses(self, X: Any, y: Any, *, bounds: tuple[float, float]) -> Losses:
        return Losses(self._mistakes(X, y)[0], *bounds)

    def _bounded_losses_of_strategy(self, X: Any, y: Any, *, bounds: tuple[float, float]) -> Losses:
        return Losses(self._expected_mistakes(X, y)[0], *bounds)


def _features(X: Any) -> list[Any]:
    """Features of each example as float64 arrays or CSR matrices, checked, all of one kind and width."""
    if isinstance(X, str) or not hasattr(X, "__len__") or sparse.issparse(X):
        raise TypeError(f"X must be a list of features (dim, d), one array for each example; got {type(X).__name__}.")
    if len(X) == 0:
        raise ValueError("X must hold at least one example; it is empty.")
    found: list[Any] = []
    for i, one in enumerate(X):
        if sparse.issparse(one):
            x: Any = sparse.csr_array(one, dtype=np.float64)
            values = x.data
        else:
            try:
                x = values = np.asarray(one, dtype=np.float64)
            except (TypeError, ValueError):
                raise ValueError(f"X[{i}] must be an array (dim, d) of numbers; got {one!r:.100}.") from None
        if x.ndim < 2 or x.shape[-1] < 1:
            raise ValueError(f"X[{i}] must have shape (dim, d) with at least one feature; got {x.shape}.")
        if not np.isfinite(values).all():
            raise ValueError(f"X[{i}] holds NaN or infinite features.")
        found.append(x)
        if x.shape[-1] != found[0].shape[-1] or sparse.issparse(x) != sparse.issparse(found[0]):
            raise ValueError(f"X[{i}] has shape {x.shape}, which differs in kind or width from X[0]: {found[0].shape}.")
    return found


def _vertices(y: Any, games: Batch) -> np.ndarray:
    """The vertices that labels name, as the scores lie, none of them outside of its polytope."""
    if isinstance(y, str) or not hasattr(y, "__len__"):
        raise TypeError(f"y must be a list of labels, one for each example; got {type(y).__name__}.")
    if len(y) != len(games):
        raise ValueError(f"X and y must have the same length; got {len(games)} examples and {len(y)} labels.")
    found = []
    for i, (game, label) in enumerate(zip(games.games, y, strict=True)):
        try:
            vertex = np.asarray(game.vertex(np.asarray(label)[None]), dtype=np.float64).reshape(1, *game.shape)
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(f"y[{i}] is no label of its game, {label!r:.100}: {error}") from None
        if _outside(game, vertex):
            raise ValueError(f"y[{i}] names a point outside of the polytope of labels: {label!r:.100}.")
        found.append(vertex.ravel())
    return np.concatenate(found)


def _outside(game: Game, point: np.ndarray) -> bool:
    """Whether a direction is found in which a point (1, \\*shape) lies beyond the best vertex of its game.

    The first direction, ``2 v - 1``, tells a vertex ``v`` of 0 and 1 from all others. Where it does not decide,
    Frank-Wolfe steps towards the point give more: one that stays out of reach is separated from the polytope.
    """
    slack = 1e-9 * max(1.0, float(np.abs(point).sum()))
    wish = 2.0 * point - 1.0
    near = corner = best_vertices(game, wish).reshape(point.shape)
    for _ in range(_STEPS):
        if not inner(flat(wish), flat(point - corner)) <= slack * max(1.0, float(np.abs(wish).max())):
            return True
        step = corner - near
        near = near + min(float((wish * step).sum()) / max(float((step**2).sum()), slack), 1.0) * step
        wish = point - near
        if np.abs(wish).max() <= slack:
            break
        corner = best_vertices(game, wish).reshape(point.shape)
    return False
