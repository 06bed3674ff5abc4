"""Table 1 of [li2022]_, low resource: the last layer of a parser trained in four ways on the same frozen features.

For each treebank, size ``m`` and draw, ``m`` training sentences are drawn; a BiLSTM parser is trained on them alone
with binary cross-entropy of every arc, and its arc features frozen. Then each method trains a bilinear layer on them.
The iterate, ``lambda`` and ``mu`` are chosen by UAS on the development set, nothing by the test set.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from nashlearn import parsing
from nashlearn.datasets import Sentence, load_treebank
from nashlearn.training.designs.arcs import tree_problem
from nashlearn.training.driver import train
from nashlearn.training.methods.descent import Descent
from reproduce.protocol import Profile
from reproduce.references.tree_layers import LAYERS, ArcViews, best_trees_of
from reproduce.run import carry_out
from reproduce.store import Store

__all__ = [
    "DRAWS",
    "INPUTS",
    "LONGER",
    "METHODS",
    "SIZES",
    "STEPS",
    "TREEBANKS",
    "backbone",
    "grid",
    "keys",
    "layer",
    "load",
    "make_features",
    "of_one_making",
    "rule",
    "run",
    "uas",
]

# Name, training split, and the treebank of the development and test splits.
TREEBANKS = {
    "Turkish IMST": (("tr_imst-r2.3", "train"), "tr_imst-r2.3"),
    "Dutch LassySmall": (("nl_lassysmall-r2.1", "trainpart"), "nl_lassysmall-r2.3"),
    "English EWT": (("en_ewt-r2.3", "train"), "en_ewt-r2.3"),
}
SIZES = (10, 50, 100, 1000)
# What the backbone reads, and where: tags help all methods alike, so that one treebank tells.
INPUTS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "forms": (tuple(TREEBANKS), SIZES),
    "forms and tags": (("Turkish IMST",), SIZES[:3]),
}
DRAWS = 5
STEPS, LONGER = 200, 1000
_EPOCHS = {10: 120, 50: 80, 100: 60, 1000: 20}
_CHECKS = 5  # looks at the development set while the features are trained

# The values of lambda, and of mu for each of them. "longer" is "marginal" with more steps.
METHODS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "biaf": ((0.0, 1e-2, 1e-1, 1.0), (0.0,)),
    "marginal": ((1e-2, 1e-1, 1.0), (0.0, 0.1, 1.0)),
    "stochastic": ((1e-2, 1e-1, 1.0), (0.0, 1.0)),
    "longer": ((1e-1,), (1.0,)),
    "nash": ((1e-2, 1e-1, 1.0), (0.1, 1.0)),
    "game": ((1e-2, 1e-1, 1.0), (0.0,)),
}


def grid(method: str, m: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Lambdas and mus of a method; a thin grid for many sentences, and nothing that would take hours."""
    lambdas, mus = METHODS[method]
    if m < SIZES[-1]:
        return lambdas, mus
    if method == "longer":
        return (), mus
    thin = tuple(lam for lam in lambdas if lam != 1e-2)
    return thin, {"marginal": mus[2:], "stochastic": mus[:1], "nash": mus[1:]}.get(method, mus)


Key = list[Any]


class Frozen(NamedTuple):
    """Frozen features of sentences, for arcs and for relations, one token after another; and what is to be found."""

    dependents: np.ndarray
    heads: np.ndarray
    label_dependents: np.ndarray
    label_heads: np.ndarray
    sizes: np.ndarray
    truth: np.ndarray  # heads of all tokens
    relations: np.ndarray  # of all tokens, -1 for those never seen in training
    counted: np.ndarray  # tokens that are no punctuation

    def design(self) -> ArcViews:
        first = np.cumsum(self.sizes)[:-1]
        heads = np.split(self.heads.astype(np.float64), np.cumsum(self.sizes + 1)[:-1])
        return ArcViews(np.split(self.dependents.astype(np.float64), first), heads)

    def split(self, tokens: np.ndarray) -> list[np.ndarray]:
        return np.split(tokens, np.cumsum(self.sizes)[:-1])


def _folder() -> Path:
    return Path(os.environ.get("NASHLEARN_FEATURES", "build/features"))


def _file(key: Key) -> Path:
    inputs, name, m, draw = key
    return _folder() / f"{inputs}-{name}-{m}-{draw}.npz".replace(" ", "_")


_read = functools.cache(load_treebank)  # one process trains many backbones


def _sample(name: str, m: int, draw: int) -> list[Sentence]:
    sentences = _read(*TREEBANKS[name][0])
    rows = np.random.default_rng([draw, m]).permutation(len(sentences))[:m]
    return [sentences[i] for i in rows]


def _binary(scores: Any, heads: Any, mask: Any) -> Any:
    """Binary cross-entropy of every arc, summed over heads, mean over tokens."""
    import torch

    real = mask[:, :, None] & torch.cat([mask.new_ones(len(mask), 1), mask], dim=1)[:, None]
    y = heads[:, :, None] == torch.arange(scores.shape[2], device=scores.device)
    losses = torch.nn.functional.binary_cross_entropy_with_logits(scores[real], y[real].to(scores), reduction="sum")
    return losses / mask.sum()


def _frozen(parser: Any, sentences: Sequence[Sentence]) -> Frozen:
    """What the trained parser says of sentences."""
    import torch

    parts: list[list[np.ndarray]] = [[], [], [], []]
    parser.eval()
    with torch.no_grad():
        for start in range(0, len(sentences), 128):
            some = sentences[start : start + 128]
            states = parser.states(parser.vocabulary.batch(some).to(parser.arc_weight.device))
            views = (*parser.arc_views(states), *parser.label_views(states))
            for j, view in enumerate(views):
                found = view.cpu().numpy()
                parts[j] += [found[i, : len(one) + j % 2] for i, one in enumerate(some)]
    number = {relation: i for i, relation in enumerate(parser.vocabulary.relations)}
    relations = np.array([number.get(r, -1) for one in sentences for r in one.deprels])
    truth = np.concatenate([one.heads for one in sentences])
    counted = np.concatenate(parsing.not_punctuation(sentences))
    sizes = np.array([len(one) for one in sentences])
    views_of = [np.concatenate(part).astype(np.float32) for part in parts]
    return Frozen(*views_of, sizes, truth, relations, counted)


def _measures(frozen: Frozen, predicted: list[np.ndarray], label_weight: np.ndarray) -> dict[str, float]:
    """UAS, LAS and complete matches of heads, with the relations that the backbone gives these arcs."""
    n = frozen.sizes
    shift = np.repeat(np.cumsum(n + 1) - n - 1, n)
    chosen = frozen.label_heads[np.concatenate(predicted) + shift]
    found = np.empty(chosen.shape[0], np.int64)
    for start in range(0, found.size, 4096):
        part = slice(start, start + 4096)
        found[part] = np.einsum(
            "tli,ti->tl",
            np.einsum("tj,lij->tli", chosen[part], label_weight, optimize=True),
            frozen.label_dependents[part],
            optimize=True,
        ).argmax(1)
    truth, labels = frozen.split(frozen.truth), (frozen.split(found), frozen.split(frozen.relations))
    mask = frozen.split(frozen.counted)
    return {
        "uas": parsing.attachment(predicted, truth, mask=mask),
        "las": parsing.attachment(predicted, truth, *labels, mask=mask),
        "ucm": parsing.complete_matches(predicted, truth, mask=mask),
        "lcm": parsing.complete_matches(predicted, truth, *labels, mask=mask),
    }


def uas(frozen: Frozen, design: ArcViews, w: np.ndarray) -> float:
    hits = np.concatenate(best_trees_of(design.scores(w), design)) == frozen.truth
    return float(hits[frozen.counted].mean())


def backbone(key: Key) -> dict[str, Any]:
    """Train the features of one draw on its sentences alone and store them; what its own last layer scores.

    On a GPU where there is one: its features are others than the processor's, by rounding and by what is dropped.
    """
    import torch

    from examples.torch.biaffine import BiaffineParser, Vocabulary, train_parser

    inputs, name, m, draw = key[1:5]
    begin = time.perf_counter()
    torch.set_num_threads(1)
    torch.manual_seed(draw)
    sample, evaluation = _sample(name, m, draw), TREEBANKS[name][1]
    dev, test = _read(evaluation, "dev"), _read(evaluation, "test")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser = BiaffineParser(Vocabulary(sample, tags="tags" in inputs)).to(device)
    best, kept, every = -1.0, {}, _EPOCHS[m] // _CHECKS
    for epoch, _ in enumerate(train_parser(parser, sample, loss=_binary, epochs=_EPOCHS[m], seed=draw), 1):
        if epoch % every == 0:
            heads, _ = parser.predict(dev)
            found = parsing.attachment(heads, [one.heads for one in dev], mask=parsing.not_punctuation(dev))
            if found > best:
                best, kept = found, {n: t.detach().clone() for n, t in parser.state_dict().items()}
    parser.load_state_dict(kept)
    weight, label_weight = (x.detach().cpu().numpy() for x in (parser.arc_weight, parser.label_weight))
    arrays = {"arc_weight": weight, "label_weight": label_weight}
    for split, sentences in (("train", sample), ("dev", dev), ("test", test)):
        frozen = _frozen(parser, sentences)
        arrays.update({f"{split} {field}": value for field, value in frozen._asdict().items()})
    path = _file(key[1:5])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
    design = frozen.design()
    predicted = best_trees_of(design.scores(weight.astype(np.float64).ravel()), design)
    seconds = time.perf_counter() - begin
    record = {"key": key, "made": _digest(weight), "device": device, "dev": best}
    return {**record, **_measures(frozen, predicted, label_weight), "seconds": seconds}


def _exact(design: ArcViews, heads: Sequence[np.ndarray], lam: float, mu: float, steps: int) -> Iterator[np.ndarray]:
    """The same objective to a certified gap, by L-BFGS with exact games."""
    omega = np.full(design.sizes.size, 1.0 / design.sizes.sum())
    alpha = lam / design.sizes.mean()
    problem = tree_problem(design, heads, omega, single_root=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unconverged fits compete as they are
        yield train(problem, Descent([mu], mu), alpha=alpha, tol=1e-2, max_iter=steps // 2).w


def _digest(weight: np.ndarray) -> str:
    return hashlib.blake2b(weight.tobytes(), digest_size=8).hexdigest()


def load(key: Key) -> tuple[dict[str, Frozen], np.ndarray, str]:
    """Frozen features of the three splits, the weights of relations, and which making this is."""
    with np.load(_file(key)) as stored:
        found = {
            split: Frozen(*(stored[f"{split} {field}"] for field in Frozen._fields))
            for split in ("train", "dev", "test")
        }
        return found, stored["label_weight"], _digest(stored["arc_weight"])


def layer(key: Key) -> dict[str, Any]:
    """One method at one lambda: for each mu the best iterate by development UAS, and its measures on the test set."""
    method, lam = key[5:7]
    frozen, label_weight, made = load(key[1:5])
    designs = {split: one.design() for split, one in frozen.items()}
    train = {**LAYERS, "longer": LAYERS["marginal"], "nash": _exact}[method]
    steps = LONGER if method == "longer" else STEPS
    heads, found = frozen["train"].split(frozen["train"].truth), []
    for mu in grid(method, key[3])[1]:
        begin, best, kept, at = time.process_time(), -1.0, np.zeros(0), 0
        spent = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # games that the double oracle leaves above its tolerance
            for step, w in enumerate(train(designs["train"], heads, lam, mu, steps), 1):
                pause = time.process_time()
                score = uas(frozen["dev"], designs["dev"], w)
                spent += time.process_time() - pause
                if score > best:
                    best, kept, at = score, w, step
        seconds = time.process_time() - begin - spent
        predicted = best_trees_of(designs["test"].scores(kept), designs["test"])
        record = {"mu": mu, "dev": best, "at": at, "seconds": seconds, "norm": float(np.linalg.norm(kept))}
        found.append({**record, **_measures(frozen["test"], predicted, label_weight)})
    return {"key": key, "made": made, "fits": found}


def keys(inputs: str, sizes: Sequence[int]) -> tuple[list[Key], list[Key]]:
    """The keys of the backbones and of the layers, the longest first."""
    backbones = [
        ["backbone", inputs, name, m, draw]
        for m in sizes[::-1]
        for name in INPUTS[inputs][0][::-1]
        for draw in range(DRAWS)
    ]
    layers = [
        ["layer", *one[1:], method, lam] for method in METHODS for one in backbones for lam in grid(method, one[3])[0]
    ]
    return backbones, layers


def _redo(work: Callable[[Key], dict[str, Any]], again: list[Key], store: Store, n_jobs: int) -> None:
    for record in joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        joblib.delayed(work)(k) for k in again
    ):
        store.add(record)


def make_features(backbones: list[Key], store: Store, n_jobs: int, what: str) -> None:
    """Train the backbones that the store lacks, and again those whose features are not at hand any more."""
    _redo(backbone, [key for key in backbones if key in store and not _file(key[1:5]).exists()], store, n_jobs)
    carry_out(backbone, backbones, store, n_jobs, f"{what} features")


def run(name: str, profile: Profile, folder: Path, n_jobs: int = 1) -> None:
    """Complete the store. Features are kept outside it; where they are made again, so are their layers."""
    store = Store(folder / f"{name}.jsonl")
    for inputs, (treebanks, sizes) in INPUTS.items():
        for key in [["rule", inputs, treebank] for treebank in treebanks]:
            if key not in store:
                store.add(rule(key))
        for m in sizes[: None if profile.splits > 3 else 1]:
            backbones, layers = keys(inputs, (m,))
            wanted = {tuple(key[1:5]) for key in layers if key not in store}
            needed = [key for key in backbones if tuple(key[1:5]) in wanted]
            make_features(needed, store, n_jobs, f"{name} {inputs} {m}")
            stale = [key for key in layers if key in store and not of_one_making(store, store[key])]
            _redo(layer, stale, store, n_jobs)
            carry_out(layer, layers, store, n_jobs, f"{name} {inputs} {m} layers")


def of_one_making(store: Store, record: dict[str, Any]) -> bool:
    """Whether a layer was trained on the features that the store's backbone has made."""
    return record.get("made") == store[["backbone", *record["key"][1:5]]].get("made")


def rule(key: Key) -> dict[str, Any]:
    """UAS on the test set without any training: each word hangs from the next, the last from the root."""
    test = _read(TREEBANKS[key[2]][1], "test")
    heads = [np.append(np.arange(2, len(one) + 1), 0) for one in test]
    return {
        "key": key,
        "uas": parsing.attachment(heads, [one.heads for one in test], mask=parsing.not_punctuation(test)),
    }
