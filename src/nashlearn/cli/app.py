"""The application: all commands together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from nashlearn.cli import options as o
from nashlearn.cli.costs import explained, read_costs
from nashlearn.cli.driver import evaluate, predict, train
from nashlearn.cli.errors import EXIT_CODES, Commands
from nashlearn.cli.outputs import check_writable
from nashlearn.cli.parse import Trees
from nashlearn.cli.tables import Tables
from nashlearn.cli.tag import Tags
from nashlearn.cli.talk import Talk, figure, grid
from nashlearn.cli.track import Tracks
from nashlearn.report import write_explorer
from nashlearn.report.page import write_whole

__all__ = ["app"]

app = typer.Typer(
    cls=Commands,
    name="nashlearn",
    help="Classifiers and structured predictors, trained by the loss they are judged by, with certificates.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for task in (Tables, Tags, Trees, Tracks):
    home = typer.Typer(no_args_is_help=True, help=task.group) if task.group else app
    for drive in (train, predict, evaluate):
        home.command(drive.__name__)(getattr(task, drive.__name__).on(task, drive))
    if task.group:
        app.add_typer(home, name=task.name)


def _version(wanted: bool) -> None:
    if wanted:
        from nashlearn import __version__

        print(f"nashlearn {__version__}")
        raise typer.Exit()


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Commands for tables; `tag`, `parse` and `track` for sequences, sentences and videos."""


@app.command("explain-cost")
def explain_cost(
    costs: Annotated[Path, typer.Argument(help="CSV: a row for each answer, a column for each true label.")],
    json: o.Json = False,
) -> None:
    """Show a matrix of costs, and what each mistake costs in words."""
    found = explained(read_costs(costs))

    def show() -> Iterator[str | Table]:
        rows = [[answer, *row] for answer, row in zip(found["answers"], found["costs"], strict=True)]
        yield grid("Cost of answering (row) when the truth is (column)", ["", *found["labels"]], rows)
        for mistake in found["mistakes"]:
            yield f"  {mistake['words']}"
        blind = found["knowing_nothing"]
        play = ", ".join(f"{answer!r} with probability {p:.3g}" for answer, p in blind["answer"].items())
        yield f"Knowing nothing, answer {play}: that costs {blind['cost_at_worst']:.4g} at worst."

    Talk(json).result(found, show)


@app.command()
def info(model: o.Model, json: o.Json = False) -> None:
    """Tell what a saved model is: versions, data, certificate, training."""
    from nashlearn import persistence

    found = persistence.read_info(model)

    def show() -> Iterator[str | Table]:
        libraries = ", ".join(f"{name} {found[name]}" for name in ("scikit-learn", "numpy", "skops", "python"))
        yield f"{model}: {found['model']}"
        yield f"written by nashlearn {found['nashlearn']} ({libraries}), format {found['format']}"
        schema = dict(found["schema"])
        columns = schema.pop("columns", None)
        try:
            rows = [_column(one) for one in columns or []]
        except (TypeError, KeyError, AttributeError):  # a schema of the user's own, saved from Python
            schema["columns"], rows = columns, []
        yield from (f"  {name}: {figure(value)}" for name, value in schema.items() if value is not None)
        if rows:
            yield grid("Columns", ["name", "kind", "categories, or how it is written"], rows)
        for part, certificate in found["certificate"].items():
            words = {name: value for name, value in certificate.items() if name != "history"}
            yield f"  certificate of {part}: {figure(words)}; {len(certificate['history'])} rounds"
        yield from (f"  {name.replace('_', ' ')}: {figure(value)}" for name, value in found["summary"].items())

    Talk(json).result(found, show)


def _column(one: dict[str, Any]) -> list[Any]:
    seen = one.get("categories", [])
    shown = ", ".join(text or "(missing)" for text in seen[:6]) + (f", … ({len(seen)})" if len(seen) > 6 else "")
    style = {name: value for name, value in one.get("style", {}).items() if value}
    return [one["name"], one["kind"], shown or figure(style)]


@app.command()
def explore(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the page.")] = Path("explorer.html"),
    json: o.Json = False,
) -> None:
    """Write the loss explorer, a page for the browser: losses of three classes, and both players' strategies."""
    check_writable(out)
    write_explorer(out.resolve())
    Talk(json).result({"explorer": str(out)})


@app.command("export-onnx")
def export_onnx(
    model: o.Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the ONNX file.")],
    json: o.Json = False,
) -> None:
    """Write a classifier of tables as ONNX: its labels and scores; the equilibrium strategy is left out."""
    check_writable(out, inputs=[model])
    from nashlearn import persistence
    from nashlearn.onnx import to_onnx

    graph = to_onnx(persistence.load(model))
    write_whole(out.resolve(), graph.SerializeToString())
    inputs, outputs = ([one.name for one in part] for part in (graph.graph.input, graph.graph.output))
    found: dict[str, Any] = {"onnx": str(out), "inputs": inputs, "outputs": outputs}
    schema = persistence.read_info(model)["schema"]
    if schema.get("ranks"):
        found["grades"] = dict(enumerate(schema["classes"]))  # the graph answers with ranks
    Talk(json).result(found)
