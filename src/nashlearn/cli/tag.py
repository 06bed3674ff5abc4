"""Sequences of tokens, in columns as the CoNLL shared tasks have them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer

import nashlearn
from nashlearn import report
from nashlearn.cli import options as o
from nashlearn.cli.costs import loss_or_costs
from nashlearn.cli.errors import named, read_text
from nashlearn.cli.labels import shown
from nashlearn.cli.talk import Trained
from nashlearn.cli.task import CONFIDENCE, Examples, Predictions, Task, certificate
from nashlearn.cli.tune import Fold, cuts, every_label
from nashlearn.datasets import parse_columns

__all__ = ["Tags"]

_DATA = "A token a line, columns between spaces, an empty line between sentences; .gz; -."

Sentences = list[list[list[str]]]


@dataclass(kw_only=True)
class Tags(Task):
    """Sentences of tokens in columns; the labels are the tags, the last column. Models are pipelines."""

    name = "tag"
    group = "Tag sequences of tokens: CoNLL columns in, CoNLL columns out."
    schema_types: ClassVar = {"columns": list, "classes": list}
    defaults: ClassVar = {"alpha": 1e-5, "smoothing": 0.5, "tol": 0.1}  # accuracy has settled at this gap
    grid: ClassVar = {"alpha": (1e-4, 1e-5, 1e-6), "smoothing": (0.2, 0.5, 1.0)}

    loss: Annotated[str, typer.Option(help="zero_one, absolute, squared, or a CSV file of costs.")] = "zero_one"
    smoothing: Annotated[float | None, typer.Option(min=0.0, help="Entropic smoothing, part of the model.")] = None
    spelling: Annotated[bool, typer.Option(help="Whether to look at how words are written.")] = True
    columns: list[dict[str, str]] = field(default_factory=list)  # without the tags
    classes: list[str] = field(default_factory=list)

    @o.Command(
        "data out | loss alpha smoothing spelling tune folds report test learning_curve tol max_iter max_time "
        "checkpoint jobs seed",
        data=_DATA,
    )
    def train(self) -> None:
        """Train a tagger: the last column holds the tags.

        nashlearn tag train chunks.txt --out chunks.model
        """

    @o.Command("model data | out", data=_DATA, out="Else standard output.")
    def predict(self) -> None:
        """Tag tokens: their columns, and the predicted tag after them.

        nashlearn tag predict chunks.model new.txt --out tagged.txt
        """

    @o.Command("model data | report", data=_DATA, report=o.ON_THESE)
    def evaluate(self) -> None:
        """Judge a tagger on tagged tokens."""

    def known(self, data: str) -> Examples:
        sentences = read_text(data, parse_columns, "sentences")
        columns = len(sentences[0][0])
        if columns < 2:
            raise ValueError(f"{named(data)} has one column; words and, in the last column, their tags are needed.")
        names = ["word", *(f"column {j}" for j in range(2, columns))]
        self.columns = self.columns or [{"name": name, "kind": "category"} for name in names]
        tokens = self._tokens(sentences, data)
        if tokens is sentences:
            raise ValueError(f"{named(data)} has no column of tags after its {columns} columns.")
        return tokens, [[token[-1] for token in one] for one in sentences]

    def _tokens(self, sentences: Sentences, data: str) -> Sentences:
        """Sentences without their tags: the same where they have none."""
        columns, width = len(sentences[0][0]), len(self.columns)
        if columns not in (width, width + 1):
            raise ValueError(
                f"{named(data)} has {columns} columns; the model was trained on {width} and the tag, which may be left "
                "out."
            )
        return sentences if columns == width else [[token[:-1] for token in one] for one in sentences]

    def build(self, examples: Examples) -> Any:
        self.classes = sorted({tag for one in examples[1] for tag in one})
        loss, options = loss_or_costs(str(self.loss), self.classes, "")
        if options is not None:
            raise ValueError(f"{self.loss} must have a row for each tag: {shown(self.classes)}.")
        return nashlearn.NashTagger(loss, **self.parameters(smoothing=self.smoothing))

    def about(self, examples: Examples) -> tuple[str, dict[str, Any]]:
        X = examples[0]
        words = f"{len(X):,} sentences, {sum(map(len, X)):,} tokens, {len(self.classes)} tags"
        return words, {"sentences": len(X), "tags": self.classes, "loss": self.loss}

    def features(self, X: Any) -> Any:
        return self._names().transform(X)

    def _names(self) -> Any:
        from nashlearn.tagging import TokenFeatures

        return TokenFeatures(spelling=self.spelling)

    def parts(self, y: Any) -> list[Fold]:
        tags, owners = np.concatenate(y), np.repeat(np.arange(len(y)), [len(one) for one in y])
        refusal = "finds no sentence to judge by: each has a tag that other folds do not have."
        folds = cuts(len(y), self.folds, self.seed, "sentences")
        parts = every_label(folds, tags, owners, f"--tune with --folds {self.folds} {refusal}")
        if len(parts) < self.folds:
            self.talk.warn(
                f"parameters are judged on {len(parts)} of {self.folds} folds: in others all sentences have rare tags."
            )
        return parts

    def completed(self, model: Any, examples: Examples, trained: Trained) -> tuple[Any, dict[str, Any]]:
        from sklearn.pipeline import Pipeline

        return Pipeline([("features", self._names()), ("model", model)]), {}

    def judge(self, model: Any, held: Examples) -> dict[str, Any]:
        """Tags and whole phrases right, and the loss; tags that training has not seen count as wrong, at no cost."""
        from nashlearn.tagging import mark_phrases, phrase_f1

        (X, y), tagger = held, model[-1]
        features = model[0].transform(X)
        answers = tagger.predict(features)
        right = sum(int(np.sum(np.asarray(a) == np.asarray(b))) for a, b in zip(answers, y, strict=True))
        tokens, unknown = sum(map(len, y)), self._unknown(y)
        found: dict[str, Any] = {"sentences": len(X), "tokens": tokens, "accuracy": right / tokens}
        if unknown:
            self.talk.warn(
                f"the data hold the tags {shown(unknown)}, which training has not seen: they count as wrong."
            )
            found["unknown_tags"] = unknown
        else:
            found["task_loss"] = tagger.task_loss(features, y)
            found["certified"] = certificate(tagger.certify(features, y, CONFIDENCE))
        if mark_phrases(self.classes):
            found["phrase_f1"] = phrase_f1(answers, y)
        return found

    def _unknown(self, y: Any) -> list[str]:
        """Tags that training has not seen."""
        return sorted({tag for one in y for tag in one} - set(self.classes))

    def report_data(self, model: Any, held: Examples, learnt: Examples | None, **more: Any) -> dict[str, Any]:
        unknown = set(self._unknown(held[1]))
        kept = [i for i, tags in enumerate(held[1]) if unknown.isdisjoint(tags)]
        X, y = ([part[i] for i in kept] for part in held)
        return report.tagging_report_data(
            model[-1],
            model[0].transform(X),
            y,
            tokens=[[token[0] for token in one] for one in X],
            baselines=None if learnt is None else _peers(model, *learnt, X, self.seed),
            title=f"{Path(self.data).name}: tagging",
            facts={"data": self.data, "sentences held out": len(X)},
            **more,
        )

    def predictions(self, model: Any) -> Predictions:
        sentences = read_text(self.data, parse_columns, "sentences")
        answers = [one.tolist() for one in model.predict(self._tokens(sentences, self.data))]

        def text() -> str:
            return "\n".join(
                "".join(f"{' '.join(token)} {tag}\n" for token, tag in zip(*pair, strict=True))
                for pair in zip(sentences, answers, strict=True)
            )

        return Predictions({"tags": answers}, text, {"sentences": len(sentences)})


def _peers(model: Any, X: Sentences, y: list[list[str]], sentences: Sentences, seed: int) -> dict[str, Any]:
    """What the tagger is held against: the usual tags of words, and a random field with the same features."""
    return {
        "most frequent tag of the word": _most_frequent(X, y, sentences),
        **report.tagging_baselines(model[0].transform(X), y, random_state=seed),
    }


def _most_frequent(X: Sentences, y: list[list[str]], sentences: Sentences) -> list[np.ndarray]:
    """The most frequent tag of each word, and for unknown words the most frequent of all."""
    pairs = [(token[0], tag) for one, tags in zip(X, y, strict=True) for token, tag in zip(one, tags, strict=True)]
    best = {word: tag for (word, tag), _ in reversed(Counter(pairs).most_common())}
    common = Counter(tag for _, tag in pairs).most_common(1)[0][0]
    return [np.array([best.get(token[0], common) for token in one]) for one in sentences]
