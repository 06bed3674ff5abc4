"""Tables: one label for each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer

import nashlearn
from nashlearn import datasets, report
from nashlearn.certificates import mean_bounds
from nashlearn.cli import options as o
from nashlearn.cli.check import naming_lines, numbered, overruled, page_about
from nashlearn.cli.costs import loss_or_costs
from nashlearn.cli.labels import class_labels, known_labels, labels_of, number, shown
from nashlearn.cli.task import CONFIDENCE, Examples, Predictions, Task, certificate
from nashlearn.cli.tune import Fold, cuts, every_label
from nashlearn.report.sections import smoothing_of

__all__ = ["Tables"]

_WIDTHS = (0.25, 1.0, 4.0)  # of a kernel, times 1 / number of columns
_BLOCK = 1 << 16  # rows predicted together
_HELD_OUT = 0.2
_ABSTAIN = "abstain"
_AS_READ = ("number", "id", "drop")  # kinds of columns that need not be read as text
_DATA = "Table: CSV, TSV, Parquet or ARFF, also .gz; - for standard input."
_ENDINGS = (".csv", ".csv.gz", ".tsv", ".parquet")


@dataclass(kw_only=True)
class Tables(Task):
    """Rows with a column of labels. Models are pipelines of :mod:`nashlearn.tabular`."""

    name = "table"
    schema_types: ClassVar = {
        "columns": list,
        "target": str,
        "classes": list,
        "ranks": bool,
        "options": list | None,
        "kind": str,
    }
    grid: ClassVar = {"alpha": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)}
    counted = "of the rows"

    target: Annotated[str, typer.Option("--target", "-t", help="The column of labels.")] = ""
    loss: Annotated[
        str | None,
        typer.Option(
            help="zero_one (the default), absolute (that of --ordinal), squared, abstain:PRICE, or a CSV file of costs."
        ),
    ] = None
    ordinal: Annotated[
        bool, typer.Option("--ordinal", help="Grades along one direction with thresholds; the loss is absolute.")
    ] = False
    order: Annotated[str | None, typer.Option(help="Grades from low to high, with commas between them.")] = None
    kernel: Annotated[str, typer.Option(help="linear, rbf, poly or laplacian.")] = "linear"
    gamma: Annotated[float | None, typer.Option(help="Width of the kernel.")] = None
    degree: Annotated[int | None, typer.Option(min=1, help="Degree of the kernel poly.")] = None
    smoothing: Annotated[
        float | None,
        typer.Option(min=0.0, help="Weight of the log loss of probabilities, relative to the largest cost; 0: none."),
    ] = None
    decision: Annotated[str, typer.Option(help="auto, scores or equilibrium: how to answer.")] = "auto"
    folds: o.Folds = 5
    categorical: Annotated[list[str] | None, typer.Option(help="A column of categories written as numbers.")] = None
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out.")] = None
    said: o.As = None
    na: o.Missing = None
    drop_unlabelled: Annotated[
        bool, typer.Option("--drop-unlabelled", help="Leave rows without a label out; else they are refused.")
    ] = False
    check: Annotated[
        bool, typer.Option("--check", help="Print a page about the data and end: nothing is trained or written.")
    ] = False
    balanced: Annotated[bool, typer.Option("--balanced", help="Weigh classes alike.")] = False
    format: Annotated[str | None, typer.Option("--format", help="csv, tsv, parquet or arff; else by the name.")] = None
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probabilities of the labels; for smoothing 0 the strategy.")
    ] = False
    classes: list[Any] = field(default_factory=list)
    ranks: bool = False  # whether the model was trained on the places of the classes in their order
    options: list[str] | None = None  # answers that are no labels
    kind: str = "classification"  # of report
    columns: list[dict[str, Any]] = field(default_factory=list)  # that the model reads
    guesses: dict[str, Any] = field(default_factory=dict)  # what all columns hold
    unlabelled: int = 0  # rows that were left out
    first: Any = None  # the step of a model that reads them

    def __post_init__(self) -> None:
        if self.ordinal and self.loss not in (None, "absolute"):
            raise ValueError(f"--ordinal is for the loss absolute; got {self.loss!r}.")
        self.loss = self.loss or ("absolute" if self.ordinal else "zero_one")

    @o.Command(
        "data target | out check said na drop_unlabelled loss ordinal order kernel gamma degree smoothing decision "
        "alpha tune folds categorical drop balanced report test learning_curve tol max_iter max_time checkpoint "
        "seed format",
        data=_DATA,
        out="Where to write the model; needed unless --check is given.",
    )
    def train(self) -> None:
        """Train a classifier on a table, by the loss that it will be judged by.

        nashlearn train wine.csv --target quality --check

        nashlearn train wine.csv --target quality --loss absolute --out wine.model --report wine.html
        """

    @o.Command("model data | out proba na format", data=_DATA, out="CSV, TSV or Parquet; else standard output.")
    def predict(self) -> None:
        """Predict the label of each row of a table.

        nashlearn predict wine.model new.csv --out answers.csv
        """

    @o.Command("model data | report na drop_unlabelled format", data=_DATA, report=o.ON_THESE)
    def evaluate(self) -> None:
        """Judge a model on labelled rows, by the loss that it was trained for.

        nashlearn evaluate wine.model test.csv
        """

    def only_looks(self) -> bool:
        if self.check:
            self.talk.result(*page_about(self))
        elif self.out is None:
            raise typer.BadParameter("is needed to train a model; --check looks at the data only.", param_hint="--out")
        return self.check

    def learn(self) -> Examples:
        from nashlearn import tabular

        drop, given = self.drop or [], self.given_kinds()
        text = [name for name, kind in given.items() if kind not in _AS_READ]
        X, column = datasets.read_table(self.data, target=self.target, drop=drop, text=text, format=self.format)
        ranks = None if self.order is None else [grade.strip() for grade in self.order.split(",")]
        X, column = self._labelled(X, column, self.data)
        y, self.classes = class_labels(column, ranks, self.target)
        self.ranks = ranks is not None
        with naming_lines(X):  # before a part is held out, so that no work is lost on an entry in it
            self.guesses = tabular.guess_columns(X, kinds=self.given_kinds(), na=self.missing(), refuse=not self.check)
        return X, y

    def known(self, data: str) -> Examples:
        X, column = self._read(data, self.target, self.format if data == self.data else None)
        X, column = self._labelled(X, column, data)
        return X, known_labels(column, self.classes, self.ranks, self.target)

    def held(self) -> Examples:
        X, y = super().held()
        with naming_lines(X):
            self.first.transform(X)  # so that no work is lost on an entry that cannot be read
        return X, y

    def _labelled(self, X: Any, column: Any, data: str) -> tuple[Any, Any]:
        """Rows with their numbers in the file; those without a label are left out where that was asked for."""
        X, column = numbered(X, data), labels_of(numbered(column, data), self.missing())
        if (self.drop_unlabelled or self.check) and column.isna().any():
            kept = column.notna().to_numpy()
            self.unlabelled = int((~kept).sum())
            self.talk.note(f"{self.unlabelled:,} rows without a label are left out.")
            if not kept.any():
                raise ValueError(f"No row has a label in the column {self.target!r}.")
            return X[kept], column[kept]
        return X, column

    def given_kinds(self) -> dict[str, str]:
        """What the user says of columns."""
        return {**dict.fromkeys(self.categorical or [], "category"), **o.pairs(self.said)}

    def missing(self) -> list[str]:
        """Texts that the user takes for missing entries."""
        return o.listed(self.na)

    def _read(self, data: str, target: str | None, format: str | None) -> tuple[Any, Any]:
        """A table as the model knows it: what an entry means must not hang on the other entries of its file."""
        text = [one["name"] for one in self.columns if one["kind"] != "number" or "style" in one]
        return datasets.read_table(data, target=target, text=text, format=format)

    def rows_to_hold_out(self, y: Any) -> Fold:
        """The same classes on both sides, where there are enough of each."""
        from sklearn.model_selection import train_test_split

        counts = np.unique(y, return_counts=True)[1]
        even = y if counts.min() >= 2 and _HELD_OUT * y.size >= counts.size else None
        cut = train_test_split(np.arange(y.size), test_size=_HELD_OUT, random_state=self.seed, stratify=even)
        refusal = (
            f"None of the {y.size:,} rows can be held out for --report: each is the only one of its class. Name "
            "data to test on with --test."
        )
        return every_label([(cut[0], cut[1])], y, np.arange(y.size), refusal)[0]

    def build(self, examples: Examples) -> Any:
        from nashlearn import tabular

        estimator = self._estimator(str(self.loss))
        if self.kind == "ordinal" and not self.ranks and isinstance(self.classes[0], str):
            self.talk.note(f"grades from low to high: {shown(self.classes)}; say --order where that is wrong.")
        model = tabular.pipeline_of(estimator, self.guesses, self.missing())
        self.first = model["columns"]
        self.columns = tabular.table_schema(model)["columns"]
        for name, guess in self.guesses.items():
            if guess.said:
                self.talk.note(f"column {name!r}: {guess.said}{overruled(name, guess.kind, guess.overrule)}")
        return model

    def _estimator(self, loss: str) -> Any:
        """The estimator for a loss as the command line names it; the kind of report and other answers hang on it."""
        kernels, kernel = ("rbf", "poly", "laplacian"), self.kernel
        if kernel not in ("linear", *kernels):
            raise ValueError(f"--kernel must be linear, {', '.join(kernels)}; got {kernel!r}.")
        if kernel == "linear" and self.gamma is not None:
            raise ValueError(f"--gamma is for the kernels {', '.join(kernels)}; name one with --kernel.")
        if kernel != "poly" and self.degree is not None:
            raise ValueError(f"--degree is for --kernel poly; the kernel is {kernel}.")
        given = self.parameters(
            gamma=self.gamma,
            degree=self.degree,
            smoothing=self.smoothing,
            random_state=self.seed,
            class_weight="balanced" if self.balanced else None,
            kernel=None if kernel == "linear" else kernel,
        )
        name, _, price = loss.partition(":")
        if self.ordinal:
            self.kind = "ordinal"
            return nashlearn.NashOrdinalClassifier(decision=self.decision, **given)
        if name == _ABSTAIN:
            self.kind, label = "abstention", _ABSTAIN
            while label in map(str, self.classes):
                label = f"({label})"
            if number(price or "0.5") is None:
                raise ValueError(f"--loss abstain:PRICE needs a number, as in abstain:0.3; got {price!r}.")
            return nashlearn.NashAbstainer(float(price or 0.5), abstain_label=label, **given)
        costs, self.options = loss_or_costs(loss, self.classes, ", abstain:PRICE")
        self.kind = "ordinal" if loss in ("absolute", "squared") else "classification"  # these are of ordered labels
        return nashlearn.NashClassifier(costs, decision=self.decision, **given)

    def about(self, examples: Examples) -> tuple[str, dict[str, Any]]:
        rows = len(examples[0])
        words = f"{rows:,} rows, {len(self.columns)} columns, {len(self.classes)} classes"
        return words, {"rows": rows, "classes": self.classes, "loss": self.loss}

    def choices(self, X: Any) -> dict[str, Sequence[Any]]:
        widths = [width / X.shape[1] for width in _WIDTHS] if self.gamma is None else [self.gamma]
        return super().choices(X) | ({"gamma": widths} if self.kernel != "linear" else {})

    def parts(self, y: Any) -> list[Fold]:
        refusal = f"finds no row to judge by: each of the {y.size:,} is alone in its class."
        folds = cuts(y.size, self.folds, self.seed, "rows", y)
        return every_label(folds, y, np.arange(y.size), f"--tune with --folds {self.folds} {refusal}")

    def fit(self, model: Any, X: Any, y: Any, spare: bool = False) -> None:
        from nashlearn import tabular

        tabular.fit_table(model, X, y, in_place=spare)

    def task_loss(self, model: Any, X: Any, y: Any) -> float:
        return float(model[-1].task_loss(model[:-1].transform(X), y))

    def schema(self, model: Any) -> dict[str, Any]:
        from nashlearn import tabular

        return super().schema(model) | tabular.table_schema(model)

    def _blocks(self, model: Any, X: Any) -> Iterator[tuple[slice, Any]]:
        """Rows, and what the first steps of a model make of them."""
        first, starts = model["columns"], range(0, len(X), _BLOCK)
        if self.na:
            first.set_params(na=tuple(dict.fromkeys([*first.na, *self.missing()])))
        with self.talk.counting("predicting", len(starts)) as advance:
            for start in starts:
                rows = slice(start, start + _BLOCK)
                with naming_lines(X):
                    made = model[:-1].transform(X.iloc[rows])
                yield rows, made
                advance()

    def judge(self, model: Any, held: Examples) -> dict[str, Any]:
        """The loss of answers on labelled rows, its bounds on new ones, accuracy; for abstention how many it gave."""
        (X, y), last = held, model[-1]
        answers, paid = [], []
        for rows, Z in self._blocks(model, X):
            answers += _answered(last, Z).tolist()
            paid.append(last._losses_of_answers(Z, y[rows]))
        values = np.concatenate([part.values for part in paid])
        found: dict[str, Any] = {"rows": int(y.size), "task_loss": float(values.mean())}
        found["certified"] = certificate(
            mean_bounds(values, paid[0].low, paid[0].high, CONFIDENCE, binary=paid[0].binary)
        )
        given = np.ones(y.size, dtype=bool)
        if hasattr(last, "abstain_label"):
            given = np.array([answer != last.abstain_label for answer in answers])
            found["coverage"] = float(given.mean())
        if getattr(last._game, "n_options", 0) == last.classes_.size or hasattr(last, "abstain_label"):
            right = np.array([a == b for a, b in zip(answers, y.tolist(), strict=True)])
            found["accuracy"] = float(right[given].mean()) if given.any() else None
        return found

    def report_data(self, model: Any, held: Examples, learnt: Examples | None, **more: Any) -> dict[str, Any]:
        X, y = held
        make = getattr(report, f"{self.kind}_report_data")
        names = dict(enumerate(map(str, self.classes))) if self.ranks else None
        if self.options is not None and isinstance(self.classes[0], str):
            names = dict(enumerate(self.options))
        return make(
            model,
            X,
            y,
            baselines=None if learnt is None else report.table_baselines(model, *learnt),
            label_names=names,
            training=learnt,
            title=f"{Path(self.data).name}: {self.kind}",
            facts={"data": self.data, "saved model": str(self.out or self.model), "rows held out": len(y)},
            **more,
        )

    def predictions(self, model: Any) -> Predictions:
        import pandas

        name = "" if self.out is None else self.out.name
        if name and not name.endswith(_ENDINGS):
            raise ValueError(f"--out must end in {', '.join(_ENDINGS)}; got {name!r}.")
        X = numbered(self._read(self.data, None, self.format)[0], self.data)
        answers, p = [], []
        for _, Z in self._blocks(model, X):
            answers.append(_answered(model[-1], Z))
            if self.proba:
                p.append(model[-1].predict_proba(Z))
        names, found = self.options or self.classes, np.concatenate(answers).tolist()
        if self.options is not None or self.ranks:
            found = [names[one] if isinstance(one, int) else one for one in found]  # abstaining has a name already
        table = pandas.DataFrame({"prediction": found})
        if self.proba:
            of = self.classes if smoothing_of(model[-1]) else names  # of labels, or of what may be answered
            table[[f"p({name})" for name in of]] = np.concatenate(p)
        text = partial(table.to_csv, index=False, sep="\t" if name.endswith(".tsv") else ",")
        binary = partial(table.to_parquet, index=False) if name.endswith(".parquet") else None
        return Predictions(table.to_dict(orient="list"), text, {"rows": len(table)}, binary)


def _answered(estimator: Any, Z: Any) -> np.ndarray:
    return np.asarray(getattr(estimator, "predict_or_abstain", estimator.predict)(Z))
