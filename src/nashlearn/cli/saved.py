"""Models of the command line in files: which task they are for, and what is said of their training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from nashlearn.cli.errors import INTERRUPTED
from nashlearn.cli.talk import Talk, Trained

__all__ = ["finish", "load_task", "save_task", "training_summary"]

_COMMANDS = {"table": "nashlearn", "tag": "nashlearn tag", "parse": "nashlearn parse", "track": "nashlearn track"}


def save_task(
    task: str,
    model: Any,
    path: Path,
    schema: Mapping[str, Any],
    summary: Mapping[str, Any],
) -> None:
    """Save a model with its task; what belongs to the run and not to the model is taken off."""
    from nashlearn import persistence

    for part in persistence.fitted_parts(model).values():
        part.set_params(callback=None, checkpoint=None)
    persistence.save(model, path, schema={"task": task, **schema}, summary=summary)


def load_task(task: str, path: Path) -> tuple[Any, dict[str, Any]]:
    """The model and its schema, or an error that names the command that it is for."""
    from nashlearn import persistence

    schema = persistence.read_info(path)["schema"]
    found = schema.get("task")
    if found not in _COMMANDS:
        raise ValueError(f"{path} was not written by a command of nashlearn; use it from Python: nashlearn.load.")
    if found != task:
        command = _COMMANDS[found]
        raise ValueError(f"{path} is a model for {found!r}; use {command} predict and {command} evaluate.")
    return persistence.load(path), schema


def training_summary(estimator: Any, trained: Trained) -> dict[str, Any]:
    """The certificate of an estimator, and how its training went."""
    return {
        "loss_in_training": estimator.worst_case_risk(),
        "objective": float(estimator.objective_),
        "dual_gap": float(estimator.dual_gap_),
        "tol": float(estimator.tol),
        "iterations": int(estimator.n_iter_),
        "seconds": round(trained.seconds, 3),
        "converged": bool(estimator.dual_gap_ <= estimator.tol),
        "interrupted": trained.interrupted,
    }


def finish(talk: Talk, found: Mapping[str, Any], trained: Trained) -> None:
    """Print what a training came to; an interrupted one ends with its own code."""
    talk.result(found)
    if trained.interrupted:
        raise typer.Exit(INTERRUPTED)
