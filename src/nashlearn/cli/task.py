"""A kind of data as the commands see it: how it is read, modelled, judged and reported."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, NamedTuple

import typer

from nashlearn.certificates import Certified
from nashlearn.cli import options as o
from nashlearn.cli.costs import costs_path
from nashlearn.cli.talk import Talk, Trained
from nashlearn.cli.tune import Fold, held_out
from nashlearn.datasets.home import encoded

__all__ = ["CONFIDENCE", "Examples", "Predictions", "SearchedTask", "Task", "certificate", "taken"]

CONFIDENCE = 0.95  # of certificates on new data
Examples = tuple[Any, Any]  # inputs and labels, one entry for each example


def certificate(found: Certified) -> dict[str, Any]:
    """Bounds of the mean loss of new examples, as the result of a command says them."""
    return {"confidence": CONFIDENCE, **found._asdict()}


def taken(examples: Examples, rows: Any) -> Examples:
    """Some of the examples."""
    from sklearn.utils import _safe_indexing

    X, y = (_safe_indexing(part, rows) for part in examples)
    return X, y


class Predictions(NamedTuple):
    """What ``predict`` gives: as data for machines, as text, counted in words; ``binary`` where a file has no text."""

    data: Mapping[str, Any]
    text: Callable[[], str]
    counts: Mapping[str, Any]
    binary: Callable[[], bytes] | None = None

    def encoded(self, path: Path) -> bytes:
        """As a file of this name holds it."""
        return encoded(path, self.text()) if self.binary is None else self.binary()


@dataclass(kw_only=True)
class Task(ABC):
    """One kind of data. Fields are the options of its commands; the drivers call the methods in the order below.

    Attributes
    ----------
    name : str
        In the schema of saved models.
    group : str
        Help of the group of its commands, which bears its name; empty for commands without a group.
    train, predict, evaluate : Command
    saved_as, part : str
        The class of a saved model, and its estimator whose certificate is shown.
    schema_types : mapping
        The fields, with their types, that are saved with a model.
    defaults, grid : mappings
        Parameters of the estimator where none are given, and values to choose from with ``--tune``.
    """

    name: ClassVar[str]
    group: ClassVar[str] = ""
    train: ClassVar[o.Command]
    predict: ClassVar[o.Command]
    evaluate: ClassVar[o.Command]
    saved_as: ClassVar[str] = "sklearn.pipeline.Pipeline"
    part: ClassVar[str] = "model"
    schema_types: ClassVar[Mapping[str, type | UnionType]]
    defaults: ClassVar[Mapping[str, Any]] = {}
    grid: ClassVar[Mapping[str, Sequence[Any]]]
    doing: ClassVar[str] = "training"
    counted: ClassVar[str] = "sentences"

    data: Annotated[str, typer.Argument()]
    model: o.Model = Path()
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write the model.")] = None
    loss: str | None = None
    alpha: Annotated[
        float | None,
        typer.Option(parser=o.positive, metavar="NUMBER > 0", help="Regularisation, against the mean loss."),
    ] = None
    tune: o.Tune = False
    folds: o.Folds = 3
    report: Annotated[Path | None, typer.Option(help="Write an HTML report on held-out data.")] = None
    test: Annotated[str | None, typer.Option(help="Data held out for the report; else 20 % of the data.")] = None
    learning_curve: Annotated[
        bool, typer.Option("--learning-curve", help="In the report, what more data bring: four times the training.")
    ] = False
    tol: Annotated[
        float | None,
        typer.Option(parser=o.positive, metavar="NUMBER > 0", help="Relative duality gap at which training ends."),
    ] = None
    max_iter: Annotated[int | None, typer.Option(min=1, help="Iterations allowed.")] = None
    max_time: Annotated[
        float | None,
        typer.Option(parser=o.positive, metavar="NUMBER > 0", help="Seconds allowed; the best model is kept."),
    ] = None
    checkpoint: Annotated[Path | None, typer.Option(help="Keep the state of training here, and go on from it.")] = None
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Threads.")] = None
    seed: Annotated[int, typer.Option(help="Of every random choice.")] = 0
    json: o.Json = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on standard error.")] = False

    @cached_property
    def talk(self) -> Talk:
        """The voice of the command."""
        return Talk(self.json, self.quiet)

    def inputs(self) -> Iterable[str | Path | None]:
        """Files that the command reads, which it must not write to."""
        return [self.data, self.test, costs_path(self.loss)]

    def only_looks(self) -> bool:
        """Whether ``train`` was asked to look at the data only, which is done here."""
        return False

    def learn(self) -> Examples:
        """Read the examples to train on."""
        return self.known(self.data)

    @abstractmethod
    def known(self, data: str) -> Any:
        """Read labelled examples as the model, trained or about to be, takes them."""

    def cut(self, examples: Examples) -> tuple[Examples, Any]:
        """Hold a part of the examples out for the report."""
        kept, held = self.rows_to_hold_out(examples[1])
        self.talk.note(f"{len(held):,} {self.counted} are held out for the report; the model is trained on the others.")
        return taken(examples, kept), taken(examples, held)

    def rows_to_hold_out(self, y: Any) -> Fold:
        """Which examples to train on, and which to hold out."""
        return held_out(len(y), self.seed)

    def held(self) -> Any:
        """The held-out examples that ``--test`` names."""
        return self.known(str(self.test))

    def parameters(self, **more: Any) -> dict[str, Any]:
        """Parameters of the estimator: those given, the task's own among them, else its defaults."""
        given = {name: getattr(self, name) for name in ("alpha", "tol", "max_iter", "max_time")}
        given |= {"n_jobs": self.jobs, "checkpoint": self.checkpoint and str(self.checkpoint.resolve()), **more}
        return {**self.defaults, **{name: value for name, value in given.items() if value is not None}}

    @abstractmethod
    def build(self, examples: Examples) -> Any:
        """The model to be trained: an estimator, or a pipeline that ends in one."""

    @abstractmethod
    def about(self, examples: Examples) -> tuple[str, dict[str, Any]]:
        """The examples in words, and what the result of the command says of them."""

    def search(self, model: Any, examples: Examples) -> dict[str, Any]:
        """Set parameters of the model by a quick validation where asked for; what the command's result says of it."""
        return {}

    def features(self, X: Any) -> Any:
        """Features of the examples to train on: made once, whatever the grid of parameters."""
        return X

    @property
    def tries_grid(self) -> bool:
        """Whether to cross-validate the grid."""
        return bool(self.tune)

    def choices(self, X: Any) -> dict[str, Sequence[Any]]:
        """The grid of ``--tune``; a parameter that is given has one value."""
        given = {name: getattr(self, name) for name in self.grid}
        return {name: values if given[name] is None else (given[name],) for name, values in self.grid.items()}

    @abstractmethod
    def parts(self, y: Any) -> list[Fold]:
        """Rows to train on and to judge by, for ``--tune``."""

    def fit(self, model: Any, X: Any, y: Any, spare: bool = False) -> None:
        """Train the model on features and labels; ``spare`` says that nobody needs the features afterwards."""
        model.fit(X, y)

    def task_loss(self, model: Any, X: Any, y: Any) -> float:
        """What a trained model is judged by where parameters are chosen."""
        return float(model.task_loss(X, y))

    def completed(self, model: Any, examples: Examples, trained: Trained) -> tuple[Any, dict[str, Any]]:
        """The model as it is saved, and what there is to say about what had to be added."""
        return model, {}

    def schema(self, model: Any) -> dict[str, Any]:
        """What the commands need to know of a saved model."""
        return {name: getattr(self, name) for name in self.schema_types}

    def restore(self, schema: Mapping[str, Any]) -> None:
        """Take up what training has found out."""
        for name in self.schema_types:
            setattr(self, name, schema[name])

    @abstractmethod
    def judge(self, model: Any, held: Any) -> dict[str, Any]:
        """Scores of a saved model on labelled examples."""

    def evaluated(self, model: Any, held: Any) -> dict[str, Any]:
        """What ``evaluate`` says."""
        return self.judge(model, held)

    def judged(self, held: Any) -> Examples:
        """What was held out, as examples."""
        examples: Examples = held
        return examples

    @abstractmethod
    def report_data(self, model: Any, held: Any, learnt: Examples | None, **more: Any) -> dict[str, Any]:
        """The report on labelled examples, against what can be made of the examples trained on, where known.

        ``more`` are options that every report takes.
        """

    @abstractmethod
    def predictions(self, model: Any) -> Predictions:
        """What a saved model says of the data."""


@dataclass(kw_only=True)
class SearchedTask(Task):
    """A task that chooses parameters by a quick validation unless told otherwise."""

    tune: o.Search = o.Tuning.FAST  # type: ignore[assignment]
    tune_time: o.TuneTime = 300.0

    @property
    def tries_grid(self) -> bool:
        return self.tune is o.Tuning.FULL

    def search(self, model: Any, examples: Examples) -> dict[str, Any]:
        return self.quick_search(model, examples) if self.tune is o.Tuning.FAST else {}

    @abstractmethod
    def quick_search(self, model: Any, examples: Examples) -> dict[str, Any]:
        """:meth:`search`, asked for; see :func:`nashlearn.cli.tune.searched`."""
