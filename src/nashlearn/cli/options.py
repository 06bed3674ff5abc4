"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Data = Annotated[str, typer.Argument(help="Table: CSV, TSV, Parquet or ARFF, also .gz; - for standard input.")]
Model = Annotated[Path, typer.Argument(help="A saved model.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Where to write the model.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on standard error.")]
Format = Annotated[str | None, typer.Option("--format", help="csv, tsv, parquet or arff; else by the name.")]
Report = Annotated[Path | None, typer.Option("--report", help="Write an HTML report on held-out data.")]
Test = Annotated[str | None, typer.Option("--test", help="Data held out for the report; else 20 % of the data.")]
Alpha = Annotated[float | None, typer.Option("--alpha", min=0.0, help="Regularisation, against the mean loss.")]
Tol = Annotated[float | None, typer.Option("--tol", min=0.0, help="Relative duality gap at which training ends.")]
MaxIter = Annotated[int | None, typer.Option("--max-iter", min=1, help="Iterations allowed.")]
MaxTime = Annotated[float | None, typer.Option("--max-time", min=0.0, help="Seconds allowed; the best model is kept.")]
Checkpoint = Annotated[
    Path | None, typer.Option("--checkpoint", help="Keep the state of training here, and go on from it.")
]
Tune = Annotated[bool, typer.Option("--tune", help="Choose parameters by cross-validation on the loss itself.")]
Folds = Annotated[int, typer.Option("--folds", min=2, help="Parts of the cross-validation of --tune.")]
Seed = Annotated[int, typer.Option("--seed", help="Of every random choice.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Threads.")]


def given(**values: Any) -> dict[str, Any]:
    """The arguments that were given, paths as text and with links followed."""
    return {
        name: str(value.resolve()) if isinstance(value, Path) else value
        for name, value in values.items()
        if value is not None
    }
