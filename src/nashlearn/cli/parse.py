"""Sentences with trees, in CoNLL-U."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer

import nashlearn
from nashlearn import parsing, report
from nashlearn.certificates import mean_bounds
from nashlearn.cli import options as o
from nashlearn.cli.errors import named, read_text
from nashlearn.cli.parse_search import quick_fold, trials
from nashlearn.cli.talk import Trained
from nashlearn.cli.task import CONFIDENCE, Examples, Predictions, SearchedTask, certificate
from nashlearn.cli.tune import Fold, held_out, searched
from nashlearn.datasets import parse_conllu
from nashlearn.tagging.groups import groups_of_vectors
from nashlearn.vectors import read_vectors

__all__ = ["Trees"]

_DATA = "Sentences in CoNLL-U, also .gz; - for standard input."
_SHARES = (0.5, 0.25, 1.0)  # alpha times the words of the treebank; the first is the default
_VECTOR_GROUPS = (64, 512)


class Recipe(StrEnum):
    """Names of :data:`nashlearn.parsing.FEATURE_SETS`, in the order in which they are tried."""

    CONTEXT = "context"
    PLAIN = "plain"


@dataclass(kw_only=True)
class Trees(SearchedTask):
    """Sentences with heads and relations. A model is a parser and, unless told otherwise, a labeller of its arcs."""

    name = "parse"
    group = "Parse sentences into dependency trees: CoNLL-U in, CoNLL-U out."
    saved_as, part = "builtins.dict", "parser"
    schema_types: ClassVar = {"bits": int, "relations": list, "recipe": str | None}
    # A gap of a tenth is where accuracy has settled, after ten to twenty passes over the sentences.
    defaults: ClassVar = {"tol": 0.1, "max_iter": 40}
    grid: ClassVar = {"alpha": _SHARES}
    doing = "training the parser"

    alpha: Annotated[
        float | None,
        typer.Option(min=0.0, help="Regularisation, against the mean loss; about 0.5 divided by the number of words."),
    ] = None
    recipe: Annotated[
        Recipe | None,
        typer.Option(
            "--features",
            help="plain: words, tags and neighbours (default of --tune off). context: and the tags further around, and "
            "what introduces a phrase.",
        ),
    ] = None
    vectors: Annotated[str | None, typer.Option(help="Vectors of words: text as of word2vec or GloVe, or .npz.")] = None
    bits: Annotated[
        int | None, typer.Option(min=10, max=28, help="2^bits weights; else 80 for each word, 22 to 25 bits.")
    ] = None
    labels: Annotated[bool, typer.Option(help="Whether to learn the relations too.")] = True
    many_roots: Annotated[bool, typer.Option("--many-roots", help="Several words may hang from the root.")] = False
    relations: list[str] = field(default_factory=list)  # that the model has learnt
    groups: Any = None  # of words, by their vectors

    @o.Command(
        "data out | alpha recipe vectors bits labels many_roots tune tune_time report test learning_curve tol max_iter "
        "max_time checkpoint jobs seed",
        data=_DATA,
        max_iter="Passes over the sentences.",
    )
    def train(self) -> None:
        """Train a parser, and a labeller of its arcs, on a treebank. Parameters that are not given are chosen.

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
        if self.vectors is not None and self.groups is None:
            self.groups = groups_of_vectors(read_vectors(self.vectors), _VECTOR_GROUPS, self.seed)
        words = sum(map(len, examples[0]))
        self.bits = self.bits or parsing.enough_bits(words)
        parameters = {"alpha": _SHARES[0] / words, **self.parameters()}
        return nashlearn.NashParser(single_root=not self.many_roots, random_state=self.seed, **parameters)

    def about(self, examples: Examples) -> tuple[str, dict[str, Any]]:
        sentences, words = len(examples[0]), sum(map(len, examples[0]))
        return f"{sentences:,} sentences, {words:,} words", {"sentences": sentences, "words": words}

    def inputs(self) -> Iterable[str | Path | None]:
        return [*super().inputs(), self.vectors]

    def quick_search(self, model: Any, examples: Examples) -> dict[str, Any]:
        """Features, then alpha, by the heads found in sentences that are held out of a part of the treebank."""
        fold = quick_fold([len(one) for one in examples[0]], self.seed)
        if fold is None:
            self.talk.note("there are too few sentences to choose parameters by: the defaults are taken.")
            return {}
        self.talk.note(
            f"choosing by heads right (UAS): {len(fold[0]):,} sentences to train on, {len(fold[1]):,} to judge by; "
            "--tune off takes the defaults."
        )
        alternatives = {
            "features": list(Recipe) if self.recipe is None else [self.recipe],
            "alpha": self.choices(examples[0])["alpha"],
        }
        attempt = trials(model, examples, fold, int(self.bits or 22), self.groups)
        best, _ = searched(self.talk, alternatives, attempt, self.tune_time, lambda loss: f"UAS {100 * (1 - loss):.2f}")
        self.recipe = best.choice["features"]
        model.set_params(alpha=best.choice["alpha"])
        return {"validated_by": "UAS", "validated": 1.0 - best.loss}

    def choices(self, X: Any) -> dict[str, Sequence[Any]]:
        if self.alpha is not None:
            return {"alpha": (self.alpha,)}
        words = sum(map(len, X))
        return {"alpha": tuple(share / words for share in _SHARES)}

    def parts(self, y: Any) -> list[Fold]:
        return [held_out(len(y), self.seed)]

    def _hashed(self, sentences: Any) -> Any:
        return parsing.HashedSentences(sentences, int(self.bits or 22), str(self.recipe or Recipe.PLAIN), self.groups)

    def fit(self, model: Any, X: Any, y: Any, spare: bool = False) -> None:
        model.fit(self._hashed(X), y)

    def task_loss(self, model: Any, X: Any, y: Any) -> float:
        return float(model.task_loss(self._hashed(X), y))

    def completed(self, model: Any, examples: Examples, trained: Trained) -> tuple[Any, dict[str, Any]]:
        self.recipe = self.recipe or Recipe.PLAIN
        complete = {"parser": model} | ({} if self.groups is None else {"groups": self.groups})
        facts: dict[str, Any] = {"features": str(self.recipe), "bits": self.bits}
        if not self.labels or trained.interrupted:
            self.relations = []
            return complete, facts
        sentences, heads = examples
        labeller = parsing.ArcLabeller(bits=min(int(self.bits or 22), 17), tol=0.1, random_state=self.seed)
        with self.talk.training("training the labeller", labeller.tol, labeller.max_iter) as (callback, labelled):
            labeller.fit(self._hashed(sentences), heads, [one.deprels for one in sentences], callback=callback)
        trained.interrupted = labelled.interrupted
        return {**complete, "labeller": labeller}, {**facts, "labeller_seconds": round(labelled.seconds, 3)}

    def restore(self, schema: Mapping[str, Any]) -> None:
        super().restore({"recipe": None, **schema})  # models of version 0.1 have plain features

    def _parsed(self, model: Any, sentences: list[Any]) -> tuple[Any, list[np.ndarray], Any]:
        """Features, heads, and relations where the model has learnt them."""
        self.groups = model.get("groups")
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
