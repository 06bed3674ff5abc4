"""Sentences with trees, in CoNLL-U."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer

import nashlearn
from nashlearn import parsing, report
from nashlearn.certificates import mean_bounds
from nashlearn.cli import options as o
from nashlearn.cli.errors import named, read_text
from nashlearn.cli.talk import Trained
from nashlearn.cli.task import CONFIDENCE, Examples, Predictions, Task, certificate
from nashlearn.cli.tune import Fold, held_out
from nashlearn.datasets import parse_conllu

__all__ = ["Trees"]

_DATA = "Sentences in CoNLL-U, also .gz; - for standard input."


@dataclass(kw_only=True)
class Trees(Task):
    """Sentences with heads and relations. A model is a parser and, unless told otherwise, a labeller of its arcs."""

    name = "parse"
    group = "Parse sentences into dependency trees: CoNLL-U in, CoNLL-U out."
    saved_as, part = "builtins.dict", "parser"
    schema_types: ClassVar = {"bits": int, "relations": list}
    # A gap of a fifth is where accuracy has settled, after about ten passes over the sentences.
    defaults: ClassVar = {"alpha": 5e-6, "tol": 0.2, "max_iter": 15}
    grid: ClassVar = {"alpha": (3e-5, 1e-5, 3e-6, 1e-6)}
    doing = "training the parser"

    bits: Annotated[int, typer.Option(min=10, max=28, help="2^bits weights.")] = 22
    labels: Annotated[bool, typer.Option(help="Whether to learn the relations too.")] = True
    many_roots: Annotated[bool, typer.Option("--many-roots", help="Several words may hang from the root.")] = False
    relations: list[str] = field(default_factory=list)  # that the model has learnt

    @o.Command(
        "data out | alpha bits labels many_roots tune report test learning_curve tol max_iter max_time "
        "checkpoint jobs seed",
        data=_DATA,
        max_iter="Passes over the sentences.",
    )
    def train(self) -> None:
        """Train a parser, and a labeller of its arcs, on a treebank.

        nashlearn parse train en.train.conllu --out en.model --report en.html --test en.dev.conllu
        """

    @o.Command("model data | out", data=_DATA, out="CoNLL-U, also .gz; else standard output.")
    def predict(self) -> None:
        """Parse sentences: the same CoNLL-U with heads, and relations where the model has learnt them."""

    @o.Command("model data | report", data=_DATA, report=o.ON_THESE)
    def evaluate(self) -> None:
        """Judge a parser on annotated sentences: heads right (UAS), with relations (LAS), whole trees."""

    def known(self, data: str) -> Examples:
        sentences = _read(data)
        for i, sentence in enumerate(sentences):
            if (sentence.heads < 0).any():
                raise ValueError(
                    f"{named(data)}: sentence {i + 1} has words without a head; annotated sentences are needed."
                )
        return sentences, [sentence.heads for sentence in sentences]

    def build(self, examples: Examples) -> Any:
        self.relations = sorted({relation for one in examples[0] for relation in one.deprels})
        if self.labels and len(self.relations) < 2:
            self.talk.note(f"the only relation is {self.relations[0]!r}: there is nothing to learn of relations.")
            self.labels = False
        return nashlearn.NashParser(single_root=not self.many_roots, random_state=self.seed, **self.parameters())

    def about(self, examples: Examples) -> tuple[str, dict[str, Any]]:
        sentences, words = len(examples[0]), sum(map(len, examples[0]))
        return f"{sentences:,} sentences, {words:,} words", {"sentences": sentences, "words": words}

    def parts(self, y: Any) -> list[Fold]:
        return [held_out(len(y), self.seed)]

    def _hashed(self, sentences: Any) -> Any:
        return parsing.HashedSentences(sentences, self.bits)

    def fit(self, model: Any, X: Any, y: Any, spare: bool = False) -> None:
        model.fit(self._hashed(X), y)

    def task_loss(self, model: Any, X: Any, y: Any) -> float:
        return float(model.task_loss(self._hashed(X), y))

    def completed(self, model: Any, examples: Examples, trained: Trained) -> tuple[Any, dict[str, Any]]:
        if not self.labels or trained.interrupted:
            self.relations = []
            return {"parser": model}, {}
        sentences, heads = examples
        labeller = parsing.ArcLabeller(bits=min(self.bits, 17), tol=0.1, random_state=self.seed)
        with self.talk.training("training the labeller", labeller.tol, labeller.max_iter) as (_, labelled):
            labeller.fit(self._hashed(sentences), heads, [one.deprels for one in sentences])
        trained.interrupted = labelled.interrupted
        return {"parser": model, "labeller": labeller}, {"labeller_seconds": round(labelled.seconds, 3)}

    def _parsed(self, model: Any, sentences: list[Any]) -> tuple[Any, list[np.ndarray], Any]:
        """Features, heads, and relations where the model has learnt them."""
        X = self._hashed(sentences)
        heads = model["parser"].predict(X)
        return X, heads, model["labeller"].predict(X, heads) if "labeller" in model else None

    def judge(self, model: Any, held: Examples) -> dict[str, Any]:
        sentences, truth = held
        _, heads, relations = self._parsed(model, sentences)
        mask = parsing.not_punctuation(sentences)
        found: dict[str, Any] = {
            "sentences": len(sentences),
            "words": int(sum(map(len, sentences))),
            "uas": parsing.attachment(heads, truth),
            "uas_without_punctuation": parsing.attachment(heads, truth, mask=mask),
            "complete_trees": parsing.complete_matches(heads, truth),
        }
        wrong = [float(np.mean(own != true)) for own, true in zip(heads, truth, strict=True)]
        found["certified"] = certificate(mean_bounds(wrong, 0.0, 1.0, CONFIDENCE))
        if relations is not None:
            names = [one.deprels for one in sentences]
            found["las"] = parsing.attachment(heads, truth, relations, names)
            found["las_without_punctuation"] = parsing.attachment(heads, truth, relations, names, mask)
        return found

    def report_data(self, model: Any, held: Examples, learnt: Examples | None, **more: Any) -> dict[str, Any]:
        X, _, relations = self._parsed(model, held[0])
        return report.parsing_report_data(
            model["parser"],
            X,
            held[0],
            relations=relations,
            baselines=None if learnt is None else report.parsing_baselines(learnt[0], held[0]),
            title=f"{Path(self.data).name}: parsing",
            facts={"data": self.data, "sentences held out": len(held[0])},
            **more,
        )

    def predictions(self, model: Any) -> Predictions:
        sentences = _read(self.data)
        _, heads, relations = self._parsed(model, sentences)
        found = {"heads": [one.tolist() for one in heads]}
        if relations is not None:
            found["relations"] = [one.tolist() for one in relations]
        names = found.get("relations") or [None] * len(sentences)

        def text() -> str:
            return "".join(str(one.with_parse(*parse)) for one, *parse in zip(sentences, heads, names, strict=True))

        return Predictions(found, text, {"sentences": len(sentences)})


def _read(data: str) -> list[Any]:
    return read_text(data, lambda lines, name: list(parse_conllu(lines, name)), "sentences")
