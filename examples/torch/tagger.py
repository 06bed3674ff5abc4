"""A BiLSTM that finds the base phrases of CoNLL-2000, trained with three losses: F1 of chunks.

The adversarial chain loss and a CRF's likelihood learn scores of neighbouring tags beside those of the network;
cross-entropy takes each token alone. The CRF needs the package pytorch-crf, and is left out without it.

    python examples/torch/tagger.py [--sentences 1000] [--epochs 4] [--store]

The data are found through the variable NASHLEARN_DATA. A few minutes on two cores. ``--store`` writes the figures to
``results/tagger.json`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

import nashlearn.torch as nt
from nashlearn import datasets

Tokens = Sequence[Sequence[str]]
Batch = tuple[Tensor, Tensor, Tensor]
BATCH = 32


def features(sentence: Tokens) -> list[tuple[str, ...]]:
    """Word, part of speech, last letters and shape of each token."""
    shapes = ("".join(sorted({"A" if c.isupper() else "0" if c.isdigit() else "a" for c in w})) for w, _ in sentence)
    return [(w.lower(), tag, w[-3:].lower(), shape) for (w, tag), shape in zip(sentence, shapes, strict=True)]


class Vocabulary:
    """Numbers of features that occur at least twice, 0 for all others, and of tags."""

    def __init__(self, sentences: Sequence[Tokens], tags: Sequence[Sequence[str]]):
        columns = list(zip(*(token for s in sentences for token in features(s)), strict=True))
        kept = [sorted(x for x, count in Counter(column).items() if count > 1) for column in columns]
        self.numbers = [{x: i + 1 for i, x in enumerate(values)} for values in kept]
        self.tags = sorted({tag for s in tags for tag in s})
        self.sizes = [len(values) + 1 for values in kept]

    def encode(self, sentence: Tokens) -> Tensor:
        """Numbers (n, 4)."""
        return torch.tensor(
            [[known.get(x, 0) for known, x in zip(self.numbers, t, strict=True)] for t in features(sentence)]
        )

    def batches(self, sentences: Sequence[Tokens], tags: Sequence[Sequence[str]]) -> list[Batch]:
        """Padded features (b, n, 4), tags (b, n) and mask (b, n) of sentences of about equal length."""
        number = {tag: i for i, tag in enumerate(self.tags)}
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        made = []
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            y = [torch.tensor([number[tag] for tag in tags[i]]) for i in some]
            mask = pad_sequence([torch.ones_like(one, dtype=torch.bool) for one in y], batch_first=True)
            x = pad_sequence([self.encode(sentences[i]) for i in some], batch_first=True)
            made.append((x, pad_sequence(y, batch_first=True), mask))
        return made


class Tagger(nn.Module):
    """Scores of tags (b, n, k)."""

    def __init__(self, sizes: Sequence[int], n_tags: int, width: int = 64):
        super().__init__()
        dims = (64, 16, 16, 8)
        self.embed = nn.ModuleList(nn.Embedding(size, dim) for size, dim in zip(sizes, dims, strict=True))
        self.drop = nn.Dropout(0.3)
        self.lstm = nn.LSTM(sum(dims), width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, n_tags)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of tags; a sentence's padding is at its end, and only it sees the padding after it."""
        embedded = torch.cat([one(x[..., i]) for i, one in enumerate(self.embed)], dim=-1)
        return self.out(self.drop(self.lstm(self.drop(embedded))[0]))


class MarkovHead(nn.Module):
    """The adversarial chain loss."""

    def __init__(self, n_tags: int):
        super().__init__()
        self.game = nt.MarkovLoss("zero_one", smoothing=0.5)
        self.transitions = nn.Parameter(torch.zeros(n_tags, n_tags))

    def forward(self, scores: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        """Mean loss of a token."""
        return self.game(scores, self.transitions, y, mask)

    def predict(self, scores: Tensor, mask: Tensor) -> list[list[int]]:
        """Tags of each sentence."""
        best = self.game.predict(scores, self.transitions, mask)
        return [row[here].tolist() for row, here in zip(best, mask, strict=True)]


class TokenHead(nn.Module):
    """Cross-entropy of each token alone."""

    def __init__(self, n_tags: int):
        super().__init__()

    def forward(self, scores: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        """Mean loss of a token."""
        return nn.functional.cross_entropy(scores[mask], y[mask])

    def predict(self, scores: Tensor, mask: Tensor) -> list[list[int]]:
        """Tags of each sentence."""
        return [row[here].tolist() for row, here in zip(scores.argmax(-1), mask, strict=True)]


class CRFHead(nn.Module):
    """The likelihood of a conditional random field."""

    def __init__(self, n_tags: int):
        from torchcrf import CRF

        super().__init__()
        self.crf = CRF(n_tags, batch_first=True)

    def forward(self, scores: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        """Mean loss of a token."""
        return -self.crf(scores, y, mask=mask, reduction="token_mean")

    def predict(self, scores: Tensor, mask: Tensor) -> list[list[int]]:
        """Tags of each sentence."""
        return self.crf.decode(scores, mask=mask)


HEADS: dict[str, Callable[[int], Any]] = {"chain game": MarkovHead, "cross-entropy": TokenHead}
if find_spec("torchcrf"):
    HEADS["CRF"] = CRFHead


def chunks(tags: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """First token, end and kind of each chunk; "I-" after another kind begins one."""
    start, kind = 0, ""
    for i, tag in enumerate([*tags, "O"]):
        mark, _, own = tag.partition("-")
        if kind and (mark != "I" or own != kind):
            yield start, i, kind
            kind = ""
        if own and not kind:
            start, kind = i, own


def chunk_f1(answers: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> float:
    """F1 of chunks that agree in place and kind."""
    found, right = ({(i, *c) for i, s in enumerate(part) for c in chunks(s)} for part in (answers, truth))
    return 2 * len(found & right) / max(len(found) + len(right), 1)


def train(head: Any, vocabulary: Vocabulary, batches: Sequence[Batch], epochs: int, device: str) -> Tagger:
    """Train a tagger with ``head`` as its loss."""
    model = Tagger(vocabulary.sizes, len(vocabulary.tags)).to(device)
    head.to(device)
    optimiser = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=5e-3)
    for _ in range(epochs):
        model.train()
        for i in torch.randperm(len(batches)).tolist():
            x, y, mask = (part.to(device) for part in batches[i])
            optimiser.zero_grad()
            head(model(x), y, mask).backward()
            optimiser.step()
    return model


@torch.no_grad()
def evaluate(model: Tagger, head: Any, vocabulary: Vocabulary, batches: Sequence[Batch], device: str) -> float:
    """F1 of chunks."""
    model.eval()
    answers, truth = [], []
    for x, y, mask in batches:
        found = head.predict(model(x.to(device)), mask.to(device))
        answers += [[vocabulary.tags[t] for t in s] for s in found]
        truth += [[vocabulary.tags[t] for t in row[here].tolist()] for row, here in zip(y, mask, strict=True)]
    return chunk_f1(answers, truth)


def compare(train_part: Any, test_part: Any, epochs: int, device: str = "cpu") -> dict[str, tuple[float, float]]:
    """F1 of chunks and seconds of training with each loss."""
    vocabulary = Vocabulary(train_part.data, train_part.target)
    known = set(vocabulary.tags)
    kept = [i for i, s in enumerate(test_part.target) if known.issuperset(s)]  # one tag may be in the test part only
    batches = vocabulary.batches(train_part.data, train_part.target)
    held_out = vocabulary.batches([test_part.data[i] for i in kept], [test_part.target[i] for i in kept])
    results = {}
    for name, make in HEADS.items():
        torch.manual_seed(0)
        head = make(len(vocabulary.tags))
        begin = time.perf_counter()
        model = train(head, vocabulary, batches, epochs, device)
        seconds = time.perf_counter() - begin
        results[name] = evaluate(model, head, vocabulary, held_out, device), seconds
    return results


def main() -> None:
    """Compare the losses and print what each reached."""
    parser = argparse.ArgumentParser(description="A BiLSTM on CoNLL-2000 with three losses.")
    parser.add_argument("--sentences", type=int, help="for training; all by default")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--store", action="store_true", help="write results/tagger.json")
    options = parser.parse_args()
    part, test = (datasets.load_chunking(name) for name in ("train", "test"))
    part.data, part.target = (values[: options.sentences] for values in (part.data, part.target))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    found = compare(part, test, options.epochs, device)
    for name, (f1, seconds) in found.items():
        print(f"{name:14} chunk F1 {100 * f1:.2f}, trained in {seconds:.0f} s")
    if options.store:
        runs = {name: {"chunk_f1": 100 * f1, "seconds": seconds} for name, (f1, seconds) in found.items()}
        content = {"sentences": len(part.data), "epochs": options.epochs, "seeds": 1, "device": device, "runs": runs}
        path = Path(__file__).parent / "results" / "tagger.json"
        path.write_text(json.dumps({**content, "torch": torch.__version__}, indent=1) + "\n")


if __name__ == "__main__":
    main()
