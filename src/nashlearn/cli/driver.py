"""The drivers of ``train``, ``predict`` and ``evaluate``, the same for every task."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from nashlearn.cli.errors import INTERRUPTED
from nashlearn.cli.outputs import check_writable
from nashlearn.cli.talk import Talk
from nashlearn.cli.task import Examples, Task, taken
from nashlearn.cli.tune import Fold, tuned
from nashlearn.report import learning_curve, write_report
from nashlearn.report.baselines import split
from nashlearn.report.page import write_whole
from nashlearn.report.sections import smoothing_of

__all__ = ["evaluate", "predict", "train"]

_COMMANDS = {"table": "nashlearn", "tag": "nashlearn tag", "parse": "nashlearn parse", "track": "nashlearn track"}


def train(task: Task) -> None:
    """Read, choose parameters where asked for, train, save, judge on what was held out, report."""
    if task.only_looks():
        return
    talk, out = task.talk, Path(str(task.out))
    if task.learning_curve and task.report is None:
        raise ValueError("--learning-curve is a part of the report: say with --report where to write one.")
    check_writable(out, task.report, task.checkpoint, inputs=task.inputs())
    talk.note(f"reading {task.data}")
    import skops.io  # noqa: F401  # before the work: it takes seconds, and may be absent

    from nashlearn import persistence

    examples, held = task.learn(), None
    if task.test is None and task.report is not None:
        examples, held = task.cut(examples)
    model = task.build(examples)
    if task.test is not None:
        held = task.held()
    words, facts = task.about(examples)
    talk.note(f"{task.data}: {words}")
    found: dict[str, Any] = {"model": str(out), **facts}
    found |= task.search(model, examples)
    features, y = task.features(examples[0]), examples[1]
    if task.tries_grid:
        found |= _tune(task, model, (features, y))
    estimator = split(model)[1]
    with talk.training(task.doing, estimator.tol, estimator.max_iter) as (callback, trained):
        estimator.set_params(callback=callback)
        task.fit(model, features, y, spare=task.report is None)
    complete, more = task.completed(model, examples, trained)
    with _keeping(talk, out):
        found |= {name: float(getattr(estimator, f"{name}_", getattr(estimator, name))) for name in task.grid}
        if hasattr(task, "smoothing"):
            found["smoothing"] = smoothing_of(estimator)
        found |= {
            "worst_case_at_training_inputs": estimator.worst_case_risk(),
            "objective": float(estimator.objective_),
            "dual_gap": float(estimator.dual_gap_),
            "tol": float(estimator.tol),
            "iterations": int(estimator.n_iter_),
            "seconds": round(trained.seconds, 3),
            "converged": bool(estimator.dual_gap_ <= estimator.tol),
            "interrupted": trained.interrupted,
            **more,
        }
        for part in persistence.fitted_parts(complete).values():  # what belongs to the run and not to the model
            part.set_params(callback=None, checkpoint=None)
        schema = {"task": task.name, **task.schema(complete)}
        persistence.save(complete, out, schema=schema, summary={"data": task.data, **found})
    if held is not None:
        found["held_out"] = task.judge(complete, held)
        more = {}
        if task.learning_curve and not trained.interrupted:
            more["learning"] = _learning(task, model, (features, y), task.judged(held))
        found |= _report(task, complete, held, examples, **more)
    talk.result(found)
    if trained.interrupted:
        raise typer.Exit(INTERRUPTED)


def predict(task: Task) -> None:
    """Load, read, write what the model says."""
    check_writable(task.out, inputs=[task.model, *task.inputs()])
    found = task.predictions(_load(task))
    if task.out is not None:
        write_whole(task.out.resolve(), found.encoded(task.out))
        task.talk.result({**found.counts, "out": str(task.out)})
    elif task.json:
        task.talk.result(found.data)
    else:
        print(found.text(), end="")


def evaluate(task: Task) -> None:
    """Load, read, judge, report."""
    check_writable(task.report, inputs=[task.model, *task.inputs()])
    model = _load(task)
    held = task.known(task.data)
    found = {"model": str(task.model), **task.evaluated(model, held)}
    task.talk.result({**found, **_report(task, model, held, None)})


def _tune(task: Task, model: Any, examples: Examples) -> dict[str, Any]:
    """Set the parameters of a model to the best of the grid by the task's own loss; what was chosen."""
    from sklearn.base import clone

    def loss(choice: dict[str, Any], fold: Fold) -> float:
        one = clone(model)
        split(one)[1].set_params(max_time=None, checkpoint=None, **choice)
        task.fit(one, *taken(examples, fold[0]))
        return task.task_loss(one, *taken(examples, fold[1]))

    grid = task.choices(examples[0])
    best = tuned(task.talk, grid, task.parts(examples[1]), loss)
    split(model)[1].set_params(**{name: best[name] for name in grid})
    return best


def _learning(task: Task, model: Any, learnt: Examples, held: Examples) -> dict[str, Any]:
    """The learning curve of a trained model, by the loss that the task is judged by."""
    shares, draws = (0.1, 0.2, 0.4, 0.7), 3
    with task.talk.counting("drawing the learning curve", len(shares) * draws) as advance:
        return learning_curve(
            model,
            *learnt,
            task.features(held[0]),
            held[1],
            shares=shares,
            draws=draws,
            fit=task.fit,
            loss=task.task_loss,
            unit=task.counted.removeprefix("of the "),
            advance=advance,
            random_state=task.seed,
        )


def _report(task: Task, model: Any, held: Any, learnt: Examples | None, **more: Any) -> dict[str, Any]:
    """Write the report where one is asked for, and say how long that took."""
    if task.report is None:
        return {}
    task.talk.note("writing the report: baselines, importances and intervals")
    began = time.perf_counter()
    write_report(task.report.resolve(), task.report_data(model, held, learnt, **more))
    return {"report": str(task.report), "report_seconds": round(time.perf_counter() - began, 3)}


@contextmanager
def _keeping(talk: Talk, path: Path) -> Iterator[None]:
    """Hold an interruption off until a trained model is in its file, then let it through."""
    talk.note(f"saving {path}")
    if threading.current_thread() is not threading.main_thread():  # only the main thread is interrupted
        yield
        return
    pending: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *_: pending.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pending:
        talk.warn(f"interrupted: {path} is complete.")
        raise KeyboardInterrupt


def _load(task: Task) -> Any:
    """The model, which the task then knows, or an error that names the command that it is for."""
    from nashlearn import persistence

    path = task.model
    schema = persistence.read_info(path)["schema"]
    found = schema.get("task")
    if found not in _COMMANDS:
        raise ValueError(f"{path} was not written by a command of nashlearn; use it from Python: nashlearn.load.")
    if found != task.name:
        command = _COMMANDS[found]
        raise ValueError(f"{path} is a model for {found!r}; use {command} predict and {command} evaluate.")
    model = persistence.load(path)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    fits = all(isinstance(schema.get(name), one) for name, one in task.schema_types.items())
    if not (fits and kind == task.saved_as and task.part in persistence.fitted_parts(model)):
        raise ValueError(f"{path} says that it is a model for {task.name!r}, but it is not. Train it again.")
    task.restore(schema)
    return model
