"""Features and parameters of a tagger, by a quick validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nashlearn.cli.task import Examples, taken
from nashlearn.cli.tune import Fold, Trial, every_label, held_out
from nashlearn.tagging import TokenFeatures, mark_phrases, phrase_f1

__all__ = ["PARAMETERS", "Measure", "measure_of", "quick_fold", "trials"]

PARAMETERS = ("alpha", "smoothing")  # of the tagger, that are chosen

_TOKENS = 60_000  # to train on and to judge by
_STEPS = 12  # of the offset,
_GAIN = 1e-3  # and what each must gain: less is chance
_FEW = 20  # sentences that are too few to choose by


class Measure(NamedTuple):
    """What taggers are chosen by.

    Attributes
    ----------
    name : str
    loss : callable
        Of a tagger, features and tags; the less the better.
    value : callable
        What is shown for a loss.
    offset : bool
        Whether to choose how much the tag ``O``, outside of phrases, is held back.
    """

    name: str
    loss: Callable[[Any, Any, Any], float]
    value: Callable[[float], float]
    offset: bool = False

    def words(self, loss: float) -> str:
        """The loss as it is shown."""
        return f"{self.name} {self.value(loss):.4f}"


_PHRASES = Measure("phrase F1", lambda tagger, X, y: 1.0 - phrase_f1(tagger.predict(X), y), lambda loss: 1 - loss, True)
_WRONG = Measure("wrong tags", lambda tagger, X, y: float(tagger.task_loss(X, y)), float)
_COST = Measure("mean cost", lambda tagger, X, y: float(tagger.task_loss(X, y)), float)


def measure_of(loss: str, tags: Sequence[str]) -> Measure:
    """Costs of one's own are their own measure; else it is phrases, where tags mark them, or tags."""
    if loss != "zero_one":
        return _COST
    return _PHRASES if "O" in tags and mark_phrases(tags) else _WRONG


def quick_fold(y: Sequence[Sequence[str]], seed: int) -> Fold | None:
    """Sentences to train candidates on, every tag among them, and a fifth as many to judge them by.

    Both together are the first of a random order up to some number of tokens. None where they are too few.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    sizes = np.array([len(y[i]) for i in order])
    cut = int(np.searchsorted(np.cumsum(sizes), _TOKENS)) + 1
    seen = {tag for i in order[:cut] for tag in y[i]}
    rows = order[:cut].tolist()
    for i in order[cut:].tolist():
        if not seen.issuperset(y[i]):
            seen.update(y[i])
            rows.append(i)
    if len(rows) < _FEW:
        return None
    chosen = np.sort(rows)
    kept, held = (chosen[part] for part in held_out(len(rows), seed))
    tags, owners = np.concatenate([y[i] for i in chosen]), np.repeat(chosen, [len(y[i]) for i in chosen])
    try:
        return every_label([(kept, held)], tags, owners, "too few")[0]
    except ValueError:
        return None


def trials(
    model: Any, maker: Callable[[Any], TokenFeatures], examples: Examples, fold: Fold, measure: Measure
) -> Callable[[dict[str, Any]], Trial]:
    """The trial of a choice of ``features``, which ``maker`` makes, and of parameters of ``model``.

    ``alpha`` weighs against a mean: as the trials have fewer tokens than the training, theirs is the larger by as much.
    Where phrases count, the offset of ``O`` that finds most of them is added to the choice.
    """
    from sklearn.base import clone

    (X, y), (X_held, y_held) = (taken(examples, rows) for rows in fold)
    scale = sum(map(len, examples[1])) / sum(map(len, y))
    made: dict[Any, Any] = {}

    def attempt(choice: dict[str, Any]) -> Trial:
        recipe, parameters = choice["features"], {name: choice[name] for name in PARAMETERS}
        if recipe not in made:
            made.clear()  # names take much memory
            learnt = maker(recipe).learn(X)
            made[recipe] = learnt.transform(X), learnt.transform(X_held)
        tagger = clone(model).set_params(max_time=None, checkpoint=None, **parameters)
        tagger.set_params(alpha=tagger.alpha * scale).fit(made[recipe][0], y)

        def loss(offset: float) -> float:
            tagger.set_params(offsets={"O": offset} if offset else None)
            return measure.loss(tagger, made[recipe][1], y_held)

        if not measure.offset:
            return Trial(choice, loss(0.0))
        offset, value = lowest(loss)
        return Trial({**choice, "offset": offset}, value)

    return attempt


def lowest(loss: Callable[[float], float]) -> tuple[float, float]:
    """Where a loss is least, and how much: from 0 by steps of a tenth down as long as each gains enough, else up."""
    best, value = 0.0, loss(0.0)
    for step in (-1, 1):
        for n in range(1, _STEPS + 1):
            there = step * n / 10
            now = loss(there)
            if now > value - _GAIN:
                break
            best, value = there, now
        if best:
            break
    return best, value
