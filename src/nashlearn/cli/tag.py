"""Commands for sequences of tokens, in columns as the CoNLL shared tasks have them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from nashlearn.cli import options as o
from nashlearn.cli.costs import LOSSES, costs_path, read_costs
from nashlearn.cli.errors import named, reading
from nashlearn.cli.labels import shown
from nashlearn.cli.outputs import check_writable, write_text
from nashlearn.cli.saved import check_saving, finish, keeping, load_task, save_task, training_summary
from nashlearn.cli.talk import Talk
from nashlearn.cli.tune import candidates, check_folds, held_out, tuned

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Tag sequences of tokens: CoNLL columns in, CoNLL columns out.")

Tokens = Annotated[
    str, typer.Argument(help="A token a line, columns between spaces, an empty line between sentences; .gz; -.")
]
_ALPHA, _SMOOTHING, _TOL = 1e-5, 0.5, 0.1  # accuracy has settled at this gap
_GRID = {"alpha": (1e-4, 1e-5, 1e-6), "smoothing": (0.2, 0.5, 1.0)}
_PHRASES = ("B-", "I-")

Sentences = list[list[list[str]]]


def _read(data: str) -> Sentences:
    from nashlearn.datasets import parse_columns, read_columns

    name = named(data)
    with reading(name):
        found = parse_columns(sys.stdin, name) if data == "-" else read_columns(data)
    if not found:
        raise ValueError(f"{name} is empty: it holds no sentences.")
    return found


def _parted(sentences: Sentences, width: int, data: str) -> tuple[Sentences, list[list[str]] | None]:
    """Tokens without their tags, and the tags, the last column; None where there is none."""
    columns = len(sentences[0][0])
    if columns == width:
        return sentences, None
    if columns != width + 1:
        raise ValueError(
            f"{named(data)} has {columns} columns; the model was trained on {width} and the tag, which may be left out."
        )
    return [[token[:-1] for token in one] for one in sentences], [[token[-1] for token in one] for one in sentences]


def _labelled(data: str, width: int | None) -> tuple[Sentences, list[list[str]]]:
    sentences = _read(data)
    columns = len(sentences[0][0])
    if columns < 2:
        raise ValueError(f"{named(data)} has one column; words and, in the last column, their tags are needed.")
    X, y = _parted(sentences, columns - 1 if width is None else width, data)
    if y is None:
        raise ValueError(f"{named(data)} has no column of tags after its {columns} columns.")
    return X, y


@app.command()
def train(
    data: Tokens,
    out: o.Out,
    loss: Annotated[str, typer.Option(help="zero_one, absolute, squared, or a CSV file of costs.")] = "zero_one",
    alpha: o.Alpha = None,
    smoothing: Annotated[float | None, typer.Option(min=0.0, help="Entropic smoothing, part of the model.")] = None,
    spelling: Annotated[bool, typer.Option(help="Whether to look at how words are written.")] = True,
    do_tune: o.Tune = False,
    folds: o.Folds = 3,
    report: o.Report = None,
    test: o.Test = None,
    tol: o.Tol = None,
    max_iter: o.MaxIter = None,
    max_time: o.MaxTime = None,
    checkpoint: o.Checkpoint = None,
    jobs: o.Jobs = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Train a tagger: the last column holds the tags.

    nashlearn tag train chunks.txt --out chunks.model
    """
    talk = Talk(json, quiet)
    check_writable(out, report, checkpoint, inputs=[data, test, costs_path(loss)])
    check_saving()
    from sklearn.pipeline import Pipeline

    from nashlearn import NashTagger
    from nashlearn.tagging import TokenFeatures

    X, y = _labelled(data, None)
    held = None if test is None else _labelled(test, len(X[0][0]))
    if held is None and report is not None:
        (X, y), held = (([X[i] for i in rows], [y[i] for i in rows]) for rows in held_out(len(X), seed))
        talk.note(f"{len(held[0]):,} sentences are held out for the report; the model is trained on the others.")
    classes = sorted({tag for one in y for tag in one})
    talk.note(f"{data}: {len(X):,} sentences, {sum(map(len, X)):,} tokens, {len(classes)} tags")
    defaults = {"alpha": _ALPHA, "smoothing": _SMOOTHING, "tol": _TOL}
    given = o.given(alpha=alpha, smoothing=smoothing, tol=tol, max_iter=max_iter, max_time=max_time, n_jobs=jobs)
    tagger = NashTagger(_loss(loss, classes), **{**defaults, **given, **o.given(checkpoint=checkpoint)})
    names = TokenFeatures(spelling=spelling)
    features = names.transform(X)
    found: dict[str, Any] = {"model": str(out), "sentences": len(X), "tags": classes, "loss": loss}
    if do_tune:
        found |= _tune(talk, tagger, features, y, folds, seed, {"alpha": alpha, "smoothing": smoothing})
    with talk.training("training", tagger.tol, tagger.max_iter) as (callback, trained):
        tagger.set_params(callback=callback).fit(features, y)
    with keeping(talk, out):
        found |= {"alpha": tagger.alpha, "smoothing": tagger.smoothing, **training_summary(tagger, trained)}
        schema = {"columns": _columns(len(X[0][0])), "classes": classes}
        save_task("tag", Pipeline([("features", names), ("model", tagger)]), out, schema, {"data": data, **found})
    if held is not None:
        found["held_out"] = _scores(talk, names, tagger, *held)
    if report is not None and held is not None:
        frequent = _most_frequent(X, y)
        _report(report, names, tagger, held, data, {"most frequent tag of the word": frequent})
        found["report"] = str(report)
    finish(talk, found, trained)


def _columns(width: int) -> list[dict[str, str]]:
    return [{"name": "word" if j == 0 else f"column {j + 1}", "kind": "category"} for j in range(width)]


def _loss(loss: str, classes: list[str]) -> Any:
    if loss in LOSSES:
        return loss
    if not Path(loss).is_file():
        raise ValueError(f"--loss must be zero_one, absolute, squared or a file of costs; {loss!r} is none of these.")
    matrix, options = read_costs(Path(loss)).aligned(classes, loss)
    if options is not None:
        raise ValueError(f"{loss} must have a row for each tag: {shown(classes)}.")
    return matrix


def _tune(
    talk: Talk, tagger: Any, X: list[Any], y: Any, folds: int, seed: int, given: dict[str, Any]
) -> dict[str, Any]:
    from sklearn.base import clone
    from sklearn.model_selection import KFold

    grid = {name: values if given[name] is None else (given[name],) for name, values in _GRID.items()}
    check_folds(len(X), folds, "sentences")
    cuts = KFold(folds, shuffle=True, random_state=seed).split(X)
    parts = [(rows, held) for rows, held in (_with_every_tag(a, b, y) for a, b in cuts) if held.size]
    if not parts:
        raise ValueError(
            f"--tune with --folds {folds} finds no sentence to judge by: each has a tag that other folds do not have."
        )
    if len(parts) < folds:
        talk.warn(f"parameters are judged on {len(parts)} of {folds} folds: in others all sentences have rare tags.")

    def loss(choice: dict[str, Any], fold: tuple[np.ndarray, np.ndarray]) -> float:
        rows, held = fold
        one = clone(tagger).set_params(max_time=None, checkpoint=None, **choice)
        one.fit([X[i] for i in rows], [y[i] for i in rows])
        return one.task_loss([X[i] for i in held], [y[i] for i in held])

    best = tuned(talk, candidates(grid), parts, loss)
    tagger.set_params(**{name: best[name] for name in grid})
    return best


def _with_every_tag(rows: np.ndarray, held: np.ndarray, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The same sentences, where those with tags that no other has are trained on: a model has to know every tag."""
    known = {tag for i in rows for tag in y[i]}
    judged = np.array([known.issuperset(y[i]) for i in held], dtype=bool)
    return np.sort(np.concatenate([rows, held[~judged]])), held[judged]


def _unknown(tagger: Any, y: list[list[str]]) -> list[str]:
    return sorted({tag for one in y for tag in one} - set(tagger.classes_.tolist()))


def _scores(talk: Talk, names: Any, tagger: Any, X: Sentences, y: list[list[str]]) -> dict[str, Any]:
    """Tags and whole phrases right, and the loss; tags that training has not seen count as wrong, without a cost."""
    from nashlearn.tagging import phrase_f1

    features = names.transform(X)
    answers = tagger.predict(features)
    right = sum(int(np.sum(np.asarray(a) == np.asarray(b))) for a, b in zip(answers, y, strict=True))
    tokens, unknown = sum(map(len, y)), _unknown(tagger, y)
    found: dict[str, Any] = {"sentences": len(X), "tokens": tokens, "accuracy": right / tokens}
    if unknown:
        talk.warn(f"the data hold the tags {shown(unknown)}, which training has not seen: they count as wrong.")
        found["unknown_tags"] = unknown
    else:
        found["task_loss"] = tagger.task_loss(features, y)
    if all(str(tag) == "O" or str(tag).startswith(_PHRASES) for tag in tagger.classes_):
        found["phrase_f1"] = phrase_f1(answers, y)
    return found


def _most_frequent(X: Sentences, y: list[list[str]]) -> Any:
    """The rule that gives each word its most frequent tag, and unknown words the most frequent of all."""
    from collections import Counter, defaultdict

    counts: Any = defaultdict(Counter)
    for sentence, tags in zip(X, y, strict=True):
        for token, tag in zip(sentence, tags, strict=True):
            counts[token[0]][tag] += 1
    total: Any = sum(counts.values(), Counter())
    common = total.most_common(1)[0][0]
    best = {word: seen.most_common(1)[0][0] for word, seen in counts.items()}
    return lambda sentences: [np.array([best.get(token[0], common) for token in one]) for one in sentences]


def _report(path: Path, names: Any, tagger: Any, held: Any, data: str, rules: dict[str, Any]) -> None:
    from nashlearn import report

    unknown = set(_unknown(tagger, held[1]))
    kept = [i for i, tags in enumerate(held[1]) if unknown.isdisjoint(tags)]
    X, y = ([part[i] for i in kept] for part in held)
    made = report.tagging_report_data(
        tagger,
        names.transform(X),
        y,
        tokens=[[token[0] for token in one] for one in X],
        baselines={name: rule(X) for name, rule in rules.items()},
        title=f"{Path(data).name}: tagging",
        facts={"data": data, "sentences held out": len(X)},
    )
    report.write_report(path.resolve(), made)


@app.command()
def predict(
    model: o.Model,
    data: Tokens,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Else standard output.")] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Tag tokens: their columns, and the predicted tag after them.

    nashlearn tag predict chunks.model new.txt --out tagged.txt
    """
    talk = Talk(json, quiet)
    check_writable(out, inputs=[model, data])
    pipeline, schema = load_task("tag", model)
    sentences = _read(data)
    X, _ = _parted(sentences, len(schema["columns"]), data)
    answers = pipeline.predict(X)
    if json and out is None:
        talk.result({"tags": [one.tolist() for one in answers]})
        return
    text = "\n".join(
        "".join(f"{' '.join(token)} {tag}\n" for token, tag in zip(sentence, tags, strict=True))
        for sentence, tags in zip(sentences, answers, strict=True)
    )
    if out is None:
        print(text, end="")
    else:
        write_text(out, text)
        talk.result({"sentences": len(sentences), "out": str(out)})


@app.command()
def evaluate(
    model: o.Model,
    data: Tokens,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report on these data.")] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Judge a tagger on tagged tokens."""
    talk = Talk(json, quiet)
    check_writable(report, inputs=[model, data])
    pipeline, schema = load_task("tag", model)
    held = _labelled(data, len(schema["columns"]))
    found: dict[str, Any] = {"model": str(model), **_scores(talk, pipeline[0], pipeline[-1], *held)}
    if report is not None:
        _report(report, pipeline[0], pipeline[-1], held, data, {})
        found["report"] = str(report)
    talk.result(found)
