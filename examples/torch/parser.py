"""A neural parser trained end to end for the heads it gets right, beside the usual cross-entropy.

The same BiLSTM with biaffine scores is trained with the adversarial tree loss and with cross-entropy over the heads of
each token, on a few hundred sentences of a treebank:

    python examples/torch/parser.py train.conllu test.conllu [sentences] [epochs] [cpu | cuda]

Without arguments it uses Turkish IMST from the folder that NASHLEARN_DATA names, and a CUDA device where there is one:
scores, games and gradients then stay there.
"""

from __future__ import annotations

import sys
import time

import torch
from biaffine import BiaffineParser, Vocabulary, train_parser
from torch import Tensor

import nashlearn.torch as nt
from nashlearn import datasets, parsing


def cross_entropy(scores: Tensor, heads: Tensor, mask: Tensor, smoothing: float = 0.0) -> Tensor:
    """Each token chooses among the root and the tokens of its sentence, with a share of ``smoothing`` for all."""
    real = torch.cat([mask.new_ones(len(mask), 1), mask], dim=1)[:, None].expand_as(scores)[mask]
    chances = scores[mask].masked_fill(~real, -torch.inf).log_softmax(1)
    even = -chances.masked_fill(~real, 0.0).sum(1) / real.sum(1)
    return ((1.0 - smoothing) * -chances.gather(1, heads[mask][:, None])[:, 0] + smoothing * even).mean()


LOSSES = {"tree game": nt.ArborescenceLoss(smoothing=3.0, tol=1e-6), "cross-entropy": cross_entropy}


def main() -> None:
    """Train with either loss and print the attachment scores."""
    if len(sys.argv) > 2:
        train, test = (datasets.read_conllu(path) for path in sys.argv[1:3])
    else:
        train, test = (datasets.load_treebank("tr_imst-r2.3", split) for split in ("train", "test"))
    train = train[: int(sys.argv[3]) if len(sys.argv) > 3 else 300]
    epochs = int(sys.argv[4]) if len(sys.argv) > 4 else 10
    device = sys.argv[5] if len(sys.argv) > 5 else "cuda" if torch.cuda.is_available() else "cpu"
    truth, counted = [one.heads for one in test], parsing.not_punctuation(test)
    for name, loss in LOSSES.items():
        torch.manual_seed(0)
        parser = BiaffineParser(Vocabulary(train)).to(device)
        begin = time.perf_counter()
        for _ in train_parser(parser, train, loss=loss, epochs=epochs):
            pass
        seconds = time.perf_counter() - begin
        heads, relations = parser.predict(test)
        uas = parsing.attachment(heads, truth, mask=counted)
        las = parsing.attachment(heads, truth, relations, [one.deprels for one in test], mask=counted)
        print(f"{name:>14}: UAS {100 * uas:.2f}, LAS {100 * las:.2f}, trained in {seconds:.0f} s")


if __name__ == "__main__":
    main()
