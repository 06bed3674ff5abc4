"""Commands for sentences with trees, in CoNLL-U."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from nashlearn.cli import options as o
from nashlearn.cli.errors import named, reading
from nashlearn.cli.outputs import check_writable, write_whole
from nashlearn.cli.saved import check_saving, finish, keeping, load_task, save_task, training_summary
from nashlearn.cli.talk import Talk
from nashlearn.cli.tune import candidates, held_out, tuned

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Parse sentences into dependency trees: CoNLL-U in, CoNLL-U out.")

Treebank = Annotated[str, typer.Argument(help="Sentences in CoNLL-U, also .gz; - for standard input.")]
# A gap of a fifth is where accuracy has settled, after about ten passes over the sentences.
_ALPHA, _TOL, _PASSES, _BITS = 5e-6, 0.2, 15, 22
_GRID = {"alpha": (3e-5, 1e-5, 3e-6, 1e-6)}


def _read(data: str) -> list[Any]:
    from nashlearn.datasets import parse_conllu, read_conllu

    name = named(data)
    with reading(name):
        found = list(parse_conllu(sys.stdin, name)) if data == "-" else read_conllu(data)
    if not found:
        raise ValueError(f"{name} is empty: it holds no sentences.")
    return found


def _with_heads(data: str) -> list[Any]:
    sentences = _read(data)
    for i, sentence in enumerate(sentences):
        if (sentence.heads < 0).any():
            raise ValueError(
                f"{named(data)}: sentence {i + 1} has words without a head; annotated sentences are needed."
            )
    return sentences


@app.command()
def train(
    data: Treebank,
    out: o.Out,
    alpha: o.Alpha = None,
    bits: Annotated[int, typer.Option(min=10, max=28, help="2^bits weights.")] = _BITS,
    labels: Annotated[bool, typer.Option(help="Whether to learn the relations too.")] = True,
    many_roots: Annotated[bool, typer.Option("--many-roots", help="Several words may hang from the root.")] = False,
    do_tune: o.Tune = False,
    report: o.Report = None,
    test: o.Test = None,
    tol: o.Tol = None,
    max_iter: Annotated[int | None, typer.Option(min=1, help="Passes over the sentences.")] = None,
    max_time: o.MaxTime = None,
    checkpoint: o.Checkpoint = None,
    jobs: o.Jobs = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Train a parser, and a labeller of its arcs, on a treebank.

    nashlearn parse train en.train.conllu --out en.model --report en.html --test en.dev.conllu
    """
    talk = Talk(json, quiet)
    check_writable(out, report, checkpoint, inputs=[data, test])
    check_saving()
    from nashlearn import NashParser
    from nashlearn.parsing import ArcLabeller, HashedSentences

    sentences = _with_heads(data)
    held = None if test is None else _with_heads(test)
    if held is None and report is not None:
        sentences, held = ([sentences[i] for i in rows] for rows in held_out(len(sentences), seed))
        talk.note(f"{len(held):,} sentences are held out for the report; the model is trained on the others.")
    words = sum(map(len, sentences))
    talk.note(f"{data}: {len(sentences):,} sentences, {words:,} words")
    relations = sorted({relation for one in sentences for relation in one.deprels})
    if labels and len(relations) < 2:
        talk.note(f"the only relation is {relations[0]!r}: there is nothing to learn of relations.")
        labels = False
    X, heads = HashedSentences(sentences, bits), [one.heads for one in sentences]
    defaults = {"alpha": _ALPHA, "tol": _TOL, "max_iter": _PASSES, "single_root": not many_roots, "random_state": seed}
    given = o.given(alpha=alpha, tol=tol, max_iter=max_iter, max_time=max_time, n_jobs=jobs, checkpoint=checkpoint)
    parser = NashParser(**{**defaults, **given})
    found: dict[str, Any] = {"model": str(out), "sentences": len(sentences), "words": words}
    if do_tune:
        found |= _tune(talk, parser, sentences, bits, seed, alpha)
    with talk.training("training the parser", parser.tol, parser.max_iter) as (callback, trained):
        parser.set_params(callback=callback).fit(X, heads)
    model: dict[str, Any] = {"parser": parser}
    found |= {"alpha": parser.alpha, **training_summary(parser, trained)}
    if labels and not trained.interrupted:
        labeller = ArcLabeller(bits=min(bits, 17), tol=0.1, random_state=seed)
        with talk.training("training the labeller", labeller.tol, labeller.max_iter) as (_, labelled):
            model["labeller"] = labeller.fit(X, heads, [one.deprels for one in sentences])
        found["labeller_seconds"] = round(labelled.seconds, 3)
        trained.interrupted = labelled.interrupted
    with keeping(talk, out):
        schema = {"bits": bits, "relations": relations if "labeller" in model else []}
        save_task("parse", model, out, schema, {"data": data, **found})
    if held is not None:
        found["held_out"] = _scores(model, held, bits)
    if report is not None and held is not None:
        _report(report, model, held, bits, data)
        found["report"] = str(report)
    finish(talk, found, trained)


def _tune(
    talk: Talk, parser: Any, sentences: Sequence[Any], bits: int, seed: int, alpha: float | None
) -> dict[str, Any]:
    """Alpha by the words of a fifth of the sentences that get the wrong head."""
    from sklearn.base import clone

    from nashlearn.parsing import HashedSentences

    def loss(choice: dict[str, Any], fold: tuple[np.ndarray, np.ndarray]) -> float:
        kept, held = ([sentences[i] for i in part] for part in fold)
        one = clone(parser).set_params(max_time=None, checkpoint=None, **choice)
        one.fit(HashedSentences(kept, bits), [sentence.heads for sentence in kept])
        return one.task_loss(HashedSentences(held, bits), [sentence.heads for sentence in held])

    grid = _GRID if alpha is None else {"alpha": (alpha,)}
    best = tuned(talk, candidates(grid), [held_out(len(sentences), seed)], loss)
    parser.set_params(alpha=best["alpha"])
    return best


def _parsed(model: dict[str, Any], sentences: list[Any], bits: int) -> tuple[Any, list[np.ndarray], Any]:
    """Features, heads, and relations where the model has learnt them."""
    from nashlearn.parsing import HashedSentences

    X = HashedSentences(sentences, bits)
    heads = model["parser"].predict(X)
    return X, heads, model["labeller"].predict(X, heads) if "labeller" in model else None


def _scores(model: dict[str, Any], sentences: list[Any], bits: int) -> dict[str, Any]:
    from nashlearn import parsing

    _, heads, relations = _parsed(model, sentences, bits)
    truth, mask = [one.heads for one in sentences], parsing.not_punctuation(sentences)
    found: dict[str, Any] = {
        "sentences": len(sentences),
        "words": int(sum(map(len, sentences))),
        "uas": parsing.attachment(heads, truth),
        "uas_without_punctuation": parsing.attachment(heads, truth, mask=mask),
        "complete_trees": parsing.complete_matches(heads, truth),
    }
    if relations is not None:
        names = [one.deprels for one in sentences]
        found["las"] = parsing.attachment(heads, truth, relations, names)
        found["las_without_punctuation"] = parsing.attachment(heads, truth, relations, names, mask)
    return found


def _report(path: Path, model: dict[str, Any], sentences: list[Any], bits: int, data: str) -> None:
    from nashlearn import report

    X, _, relations = _parsed(model, sentences, bits)
    facts = {"data": data, "sentences held out": len(sentences)}
    title = f"{Path(data).name}: parsing"
    made = report.parsing_report_data(model["parser"], X, sentences, relations=relations, title=title, facts=facts)
    report.write_report(path.resolve(), made)


@app.command()
def predict(
    model: o.Model,
    data: Treebank,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CoNLL-U, also .gz; else standard output.")] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Parse sentences: the same CoNLL-U with heads, and relations where the model has learnt them."""
    talk = Talk(json, quiet)
    check_writable(out, inputs=[model, data])
    from nashlearn.datasets import write_conllu

    parts, schema = load_task("parse", model)
    sentences = _read(data)
    _, heads, relations = _parsed(parts, sentences, schema["bits"])
    if json and out is None:
        found = {"heads": [one.tolist() for one in heads]}
        talk.result(found if relations is None else {**found, "relations": [one.tolist() for one in relations]})
        return
    parsed = [
        sentence.with_parse(one, None if relations is None else relations[i].tolist())
        for i, (sentence, one) in enumerate(zip(sentences, heads, strict=True))
    ]
    if out is None:
        print("".join(map(str, parsed)), end="")
    else:
        write_whole(out, lambda path: write_conllu(parsed, path))
        talk.result({"sentences": len(parsed), "out": str(out)})


@app.command()
def evaluate(
    model: o.Model,
    data: Treebank,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report on these data.")] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Judge a parser on annotated sentences: heads right (UAS), with relations (LAS), whole trees."""
    talk = Talk(json, quiet)
    check_writable(report, inputs=[model, data])
    parts, schema = load_task("parse", model)
    sentences = _with_heads(data)
    found: dict[str, Any] = {"model": str(model), **_scores(parts, sentences, schema["bits"])}
    if report is not None:
        _report(report, parts, sentences, schema["bits"], data)
        found["report"] = str(report)
    talk.result(found)
