"""Commands for tables: one label for each row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from nashlearn.cli import options as o
from nashlearn.cli.costs import costs_path
from nashlearn.cli.labels import class_labels, known_labels, shown
from nashlearn.cli.outputs import check_writable, write_whole
from nashlearn.cli.saved import check_saving, finish, keeping, load_task, save_task, training_summary
from nashlearn.cli.table_model import (
    Answers,
    chosen_loss,
    estimator_for,
    held_out_rows,
    note_identifiers,
    predicted,
    report_data,
    scores,
    tune,
)
from nashlearn.cli.talk import Talk

__all__ = ["evaluate", "predict", "train"]

_HELD_OUT = 0.2


def train(
    data: o.Data,
    target: Annotated[str, typer.Option("--target", "-t", help="The column of labels.")],
    out: o.Out,
    loss: Annotated[
        str | None,
        typer.Option(
            help="zero_one (the default), absolute (that of --ordinal), squared, abstain:PRICE, or a CSV file of costs."
        ),
    ] = None,
    ordinal: Annotated[
        bool, typer.Option("--ordinal", help="Grades along one direction with thresholds; the loss is absolute.")
    ] = False,
    order: Annotated[str | None, typer.Option(help="Grades from low to high, with commas between them.")] = None,
    kernel: Annotated[str, typer.Option(help="linear, rbf, poly or laplacian.")] = "linear",
    gamma: Annotated[float | None, typer.Option(help="Width of the kernel.")] = None,
    degree: Annotated[int | None, typer.Option(min=1, help="Degree of the kernel poly.")] = None,
    decision: Annotated[str, typer.Option(help="auto, scores or equilibrium: how to answer.")] = "auto",
    alpha: o.Alpha = None,
    do_tune: o.Tune = False,
    folds: o.Folds = 5,
    categorical: Annotated[list[str] | None, typer.Option(help="A column of categories written as numbers.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out.")] = None,
    balanced: Annotated[bool, typer.Option("--balanced", help="Weigh classes alike.")] = False,
    report: o.Report = None,
    test: o.Test = None,
    tol: o.Tol = None,
    max_iter: o.MaxIter = None,
    max_time: o.MaxTime = None,
    checkpoint: o.Checkpoint = None,
    seed: o.Seed = 0,
    format: o.Format = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Train a classifier on a table, by the loss that it will be judged by.

    nashlearn train wine.csv --target quality --loss absolute --out wine.model --report wine.html
    """
    talk = Talk(json, quiet)
    loss = chosen_loss(loss, ordinal)
    check_writable(out, report, checkpoint, inputs=[data, test, costs_path(loss)])
    check_saving()
    from nashlearn import tabular
    from nashlearn.datasets import read_table

    X, column = read_table(data, target=target, drop=drop or [], text=categorical or [], format=format)
    ranks = None if order is None else [grade.strip() for grade in order.split(",")]
    y, classes = class_labels(column, ranks, target)
    given = o.given(alpha=alpha, tol=tol, max_iter=max_iter, max_time=max_time, checkpoint=checkpoint)
    given |= o.given(gamma=gamma, degree=degree, random_state=seed, class_weight="balanced" if balanced else None)
    estimator, answers = estimator_for(
        loss, classes, ordinal=ordinal, ranks=ranks is not None, decision=decision, kernel=kernel, given=given
    )
    if answers.kind == "ordinal" and ranks is None and isinstance(classes[0], str):
        talk.note(f"grades from low to high: {shown(classes)}; say --order where that is wrong.")
    held = None
    if test is None and report is not None:
        kept, out_rows = held_out_rows(y, _HELD_OUT, seed)
        held = X.iloc[out_rows], y[out_rows]
        X, y = X.iloc[kept], y[kept]
        talk.note(f"{len(out_rows):,} of the rows are held out for the report; the model is trained on the others.")
    model = tabular.table_pipeline(estimator, X, categorical=categorical or [])
    if test is not None:
        held = _labelled(test, model, target, answers, None)
    note_identifiers(talk, X, model["columns"].kinds, categorical or [])
    talk.note(f"{data}: {len(X):,} rows, {len(model['columns'].kinds)} columns, {len(classes)} classes")
    found: dict[str, Any] = {"model": str(out), "rows": len(X), "classes": classes, "loss": loss}
    if do_tune:
        found |= tune(talk, model, X, y, folds=folds, seed=seed, wide=kernel != "linear", alpha=alpha, gamma=gamma)
    with talk.training("training", estimator.tol, estimator.max_iter) as (callback, trained):
        estimator.set_params(callback=callback)
        tabular.fit_table(model, X, y, in_place=report is None)
    with keeping(talk, out):
        found |= {"alpha": float(estimator.alpha), **training_summary(estimator, trained)}
        schema = {**tabular.table_schema(model), "target": target, **answers._asdict()}
        save_task("table", model, out, schema, {"data": data, **found})
    if held is not None:
        found["held_out"] = scores(model, *held, talk=talk)
    if report is not None and held is not None:
        _report(report, model, held, answers, data=data, out=out, trained_on=(X, y))
        found["report"] = str(report)
    finish(talk, found, trained)


def _labelled(data: str, model: Any, target: str, answers: Answers, format: str | None) -> tuple[Any, np.ndarray]:
    """Features and labels of a table, as a model knows them."""
    from nashlearn.datasets import read_table

    X, column = read_table(data, target=target, text=_categories(model), format=format)
    return X, known_labels(column, answers.classes, answers.ranks, target)


def _categories(model: Any) -> list[str]:
    """Columns to read as text: what an entry means must not hang on the other entries of its file."""
    return [name for name, kind in model["columns"].kinds.items() if kind == "category"]


def _report(path: Path, model: Any, held: Any, answers: Answers, *, data: str, out: Path, trained_on: Any) -> None:
    from nashlearn import report

    baselines = None if trained_on is None else report.table_baselines(model, *trained_on)
    facts = {"data": data, "saved model": str(out), "rows held out": len(held[1])}
    title = f"{Path(data).name}: {answers.kind}"
    X, y = held
    report.write_report(
        path.resolve(), report_data(model, X, y, answers, baselines=baselines, title=title, facts=facts)
    )


def _answers(schema: dict[str, Any]) -> Answers:
    return Answers(*(schema[name] for name in Answers._fields))


def predict(
    model: o.Model,
    data: o.Data,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV, TSV or Parquet; else standard output.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the strategy p, which is not calibrated.")] = False,
    format: o.Format = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Predict the label of each row of a table.

    nashlearn predict wine.model new.csv --out answers.csv
    """
    talk = Talk(json, quiet)
    check_writable(out, inputs=[model, data])
    if out is not None and not out.name.endswith(tuple(_WRITERS)):
        raise ValueError(f"--out must end in {', '.join(_WRITERS)}; got {out.name!r}.")
    import pandas

    from nashlearn.datasets import read_table

    pipeline, schema = load_task("table", model)
    answers = _answers(schema)
    X, _ = read_table(data, text=_categories(pipeline), format=format)
    predictions, p = predicted(pipeline, X, talk=talk, proba=proba)
    table = pandas.DataFrame({"prediction": answers.read(predictions)})
    if p is not None:
        names = answers.options or answers.classes
        for name, share in zip(names, p.T, strict=True):
            table[f"p({name})"] = share
    if out is not None:
        write_whole(out, lambda path: _write(table, path))
        talk.result({"rows": len(table), "out": str(out)})
    elif json:
        talk.result(table.to_dict(orient="list"))
    else:
        print(table.to_csv(index=False), end="")


def _write(table: Any, path: Path) -> None:
    next(write for ending, write in _WRITERS.items() if path.name.endswith(ending))(table, path)


_WRITERS: dict[str, Any] = {
    ".csv": lambda table, path: table.to_csv(path, index=False),
    ".csv.gz": lambda table, path: table.to_csv(path, index=False, compression="gzip"),
    ".tsv": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    ".parquet": lambda table, path: table.to_parquet(path, index=False),
}


def evaluate(
    model: o.Model,
    data: o.Data,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report on these data.")] = None,
    format: o.Format = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Judge a model on labelled rows, by the loss that it was trained for.

    nashlearn evaluate wine.model test.csv
    """
    talk = Talk(json, quiet)
    check_writable(report, inputs=[model, data])
    pipeline, schema = load_task("table", model)
    answers = _answers(schema)
    held = _labelled(data, pipeline, schema["target"], answers, format)
    found: dict[str, Any] = {"model": str(model), **scores(pipeline, *held, talk=talk)}
    if report is not None:
        _report(report, pipeline, held, answers, data=data, out=model, trained_on=None)
        found["report"] = str(report)
    talk.result(found)
