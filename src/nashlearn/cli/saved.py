"""Models of the command line in files: which task they are for, and what is said of their training."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Any

import typer

from nashlearn.cli.errors import INTERRUPTED
from nashlearn.cli.talk import Talk, Trained

__all__ = ["check_saving", "finish", "keeping", "load_task", "save_task", "training_summary"]

_COMMANDS = {"table": "nashlearn", "tag": "nashlearn tag", "parse": "nashlearn parse", "track": "nashlearn track"}
_MODELS = {
    "table": "sklearn.pipeline.Pipeline",
    "tag": "sklearn.pipeline.Pipeline",
    "parse": "builtins.dict",
    "track": "nashlearn.estimators.matcher.NashMatcher",
}
_SCHEMAS: dict[str, dict[str, type | UnionType]] = {
    "table": {"target": str, "classes": list, "ranks": bool, "options": list | None, "kind": str},
    "tag": {"columns": list, "classes": list},
    "parse": {"bits": int, "relations": list},
    "track": {"memory": int, "on": str},
}


def check_saving() -> None:
    """Import what saving needs before the work: that takes seconds, and it may be absent."""
    import skops.io  # noqa: F401


@contextmanager
def keeping(talk: Talk, path: Path) -> Iterator[None]:
    """Hold an interruption off until a trained model is in its file, then let it through."""
    talk.note(f"saving {path}")
    if threading.current_thread() is not threading.main_thread():  # only the main thread is interrupted
        yield
        return
    pending = False

    def later(*_: Any) -> None:
        nonlocal pending
        pending = True

    before = signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pending:
        talk.warn(f"interrupted: {path} is complete.")
        raise KeyboardInterrupt


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
    model = persistence.load(path)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    fits = all(isinstance(schema.get(name), one) for name, one in _SCHEMAS[task].items())
    parts = persistence.fitted_parts(model)
    if not (fits and kind == _MODELS[task] and parts and (task != "parse" or "parser" in parts)):
        raise ValueError(f"{path} says that it is a model for {task!r}, but it is not. Train it again.")
    return model, schema


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
