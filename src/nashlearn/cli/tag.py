"""Sequences of tokens, in columns as the CoNLL shared tasks have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
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
from nashlearn.cli.tag_search import PARAMETERS, Measure, measure_of, quick_fold, trials
from nashlearn.cli.talk import Trained
from nashlearn.cli.task import CONFIDENCE, Examples, Predictions, SearchedTask, certificate
from nashlearn.cli.tune import Fold, cuts, every_label, searched
from nashlearn.datasets import parse_columns
from nashlearn.tagging import RECIPES, TokenFeatures, mark_phrases, phrase_scores

__all__ = ["Tags"]

_DATA = "A token a line, columns between spaces or tabs, an empty line between sentences; .gz; -."
_QUICK = {"alpha": (1e-5, 3e-5, 1e-4, 3e-6), "smoothing": (0.5, 2.0, 0.2)}

Sentences = list[list[list[str]]]


class Recipe(StrEnum):
    """Names of :data:`nashlearn.tagging.RECIPES`."""

    WINDOW = "window"
    SPELLING = "spelling"
    ENTITIES = "entities"
    WIDE = "wide"
    CLUSTERS = "clusters"


_TRIED = [Recipe.ENTITIES, Recipe.WIDE, Recipe.CLUSTERS, Recipe.SPELLING]


@dataclass(kw_only=True)
class Tags(SearchedTask):
    """Sentences of tokens in columns; the labels are the tags, the last column. Models are pipelines."""

    name = "tag"
    group = "Tag sequences of tokens: CoNLL columns in, CoNLL columns out."
    schema_types: ClassVar = {"columns": list, "classes": list}
    defaults: ClassVar = {"alpha": 1e-5, "smoothing": 0.5, "tol": 0.1}  # accuracy has settled at this gap
    grid: ClassVar = {"alpha": (1e-4, 1e-5, 1e-6), "smoothing": (0.2, 0.5, 1.0)}

    loss: Annotated[str, typer.Option(help="zero_one, absolute, squared, or a CSV file of costs.")] = "zero_one"
    smoothing: Annotated[float | None, typer.Option(min=0.0, help="Entropic smoothing, part of the model.")] = None
    recipe: Annotated[
        Recipe | None,
        typer.Option(
            "--features",
            help="window: words and other columns around. spelling: and how words are written (default of --tune off). "
            "entities: what names ask for. wide: entities and window. clusters: and groups of words, learnt from the "
            "text.",
        ),
    ] = None
    spelling: Annotated[
        bool | None, typer.Option("--spelling/--no-spelling", help="The same as --features spelling or window.")
    ] = None
    gazetteer: Annotated[
        list[str] | None, typer.Option(help="A file of names, one a line; the option may be repeated.")
    ] = None
    vectors: Annotated[str | None, typer.Option(help="Vectors of words: text as of word2vec or GloVe, or .npz.")] = None
    columns: list[dict[str, str]] = field(default_factory=list)  # without the tags
    classes: list[str] = field(default_factory=list)
    maker: Any = None  # of features, fitted

    @o.Command(
        "data out | loss alpha smoothing recipe spelling gazetteer vectors tune tune_time folds report test "
        "learning_curve tol max_iter max_time checkpoint jobs seed",
        data=_DATA,
    )
    def train(self) -> None:
        """Train a tagger: the last column holds the tags. Parameters and features that are not given are chosen.

        nashlearn tag train names.txt --out names.model --gazetteer people.txt
        """

    @o.Command("model data | out", data=_DATA, out="Else standard output.")
    def predict(self) -> None:
        """Tag tokens: their columns, and the predicted tag after them.

        nashlearn tag predict chunks.model new.txt --out tagged.txt
        """

    @o.Command("model data | report", data=_DATA, report=o.ON_THESE)
    def evaluate(self) -> None:
        """Judge a tagger on tagged tokens."""

    def inputs(self) -> Iterable[str | Path | None]:
        return [*super().inputs(), *(self.gazetteer or ()), self.vectors]

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
        if self.recipe is None and self.spelling is not None:
            self.recipe = Recipe.SPELLING if self.spelling else Recipe.WINDOW
        loss, options = loss_or_costs(str(self.loss), self.classes, "")
        if options is not None:
            raise ValueError(f"{self.loss} must have a row for each tag: {shown(self.classes)}.")
        return nashlearn.NashTagger(loss, **self.parameters(smoothing=self.smoothing))

    def about(self, examples: Examples) -> tuple[str, dict[str, Any]]:
        X = examples[0]
        words = f"{len(X):,} sentences, {sum(map(len, X)):,} tokens, {len(self.classes)} tags"
        return words, {"sentences": len(X), "tags": self.classes, "loss": self.loss}

    def quick_search(self, model: Any, examples: Examples) -> dict[str, Any]:
        fold, measure = quick_fold(examples[1], self.seed), self._measure()
        if fold is None:
            self.talk.note("there are too few sentences to choose parameters by: the defaults are taken.")
            return {}
        self.talk.note(
            f"choosing by {measure.name}: {len(fold[0]):,} sentences to train on, {len(fold[1]):,} to judge by; "
            "--tune off takes the defaults."
        )
        attempt = trials(model, self._maker, examples, fold, measure)
        best, _ = searched(self.talk, self._alternatives(), attempt, self.tune_time, measure.words)
        self.recipe = best.choice["features"]
        offset = best.choice.get("offset", 0.0)
        model.set_params(offsets={"O": offset} if offset else None, **{name: best.choice[name] for name in PARAMETERS})
        about = {"features": str(self.recipe), **({"offset": offset} if measure.offset else {})}
        return about | {"validated_by": measure.name, "validated": measure.value(best.loss)}

    def _alternatives(self) -> dict[str, Sequence[Any]]:
        """What to choose from, where to begin first; what is given has one value."""
        choices = {"features": _TRIED if self.recipe is None else [self.recipe]}
        return choices | {
            name: _QUICK[name] if getattr(self, name) is None else [getattr(self, name)] for name in PARAMETERS
        }

    def _measure(self) -> Measure:
        return measure_of(str(self.loss), self.classes)

    def task_loss(self, model: Any, X: Any, y: Any) -> float:
        return self._measure().loss(model, X, y)

    def features(self, X: Any) -> Any:
        self.recipe = self.recipe or Recipe.SPELLING
        self.maker = self._maker(self.recipe).learn(X)
        return self.maker.transform(X)

    def _maker(self, recipe: Recipe) -> TokenFeatures:
        """What makes features, its files read once."""
        if self.maker is None:
            gazetteers = self.gazetteer or []
            self.maker = TokenFeatures(gazetteers=gazetteers, vectors=self.vectors, random_state=self.seed).read()
        return copy(self.maker).set_params(**RECIPES[recipe])

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

        return Pipeline([("features", self.maker), ("model", model)]), {}

    def judge(self, model: Any, held: Examples) -> dict[str, Any]:
        """Whole phrases and tags right, and the loss; tags that training has not seen count as wrong, at no cost."""
        (X, y), tagger = held, model[-1]
        features = model[0].transform(X)
        answers = tagger.predict(features)
        right = sum(int(np.sum(np.asarray(a) == np.asarray(b))) for a, b in zip(answers, y, strict=True))
        tokens, unknown = sum(map(len, y)), self._unknown(y)
        found: dict[str, Any] = {"sentences": len(X), "tokens": tokens}
        if mark_phrases(self.classes):
            found |= {f"phrase_{name}": value for name, value in phrase_scores(answers, y)._asdict().items()}
        found["accuracy"] = right / tokens
        if unknown:
            self.talk.warn(
                f"the data hold the tags {shown(unknown)}, which training has not seen: they count as wrong."
            )
            found["unknown_tags"] = unknown
        else:
            found["task_loss"] = tagger.task_loss(features, y)
            found["certified"] = certificate(tagger.certify(features, y, CONFIDENCE))
        return found

    def _unknown(self, y: Any) -> list[str]:
        """Tags that training has not seen."""
        return sorted({tag for one in y for tag in one} - set(self.classes))

    def judged(self, held: Examples) -> Examples:
        """Without sentences that have a tag that training has not seen."""
        unknown = set(self._unknown(held[1]))
        kept = [i for i, tags in enumerate(held[1]) if unknown.isdisjoint(tags)]
        return [held[0][i] for i in kept], [held[1][i] for i in kept]

    def report_data(self, model: Any, held: Examples, learnt: Examples | None, **more: Any) -> dict[str, Any]:
        X, y = self.judged(held)
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
        answers = [list(map(str, one)) for one in model.predict(self._tokens(sentences, self.data))]
        spaced = all(cell and not set(cell) & set(" \t") for one in sentences for token in one for cell in token)
        between = " " if spaced else "\t"  # words that hold spaces, or nothing, came between tabs

        def text() -> str:
            return "\n".join(
                "".join(f"{between.join(token)}{between}{tag}\n" for token, tag in zip(*pair, strict=True))
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
