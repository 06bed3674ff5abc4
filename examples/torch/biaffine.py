"""A small neural parser: embeddings, a bidirectional LSTM and biaffine scores of arcs and labels [dozat2017]_.

Trained from a treebank alone, without pre-trained weights. The score of token ``d`` with head ``h`` is

    theta_dh = [a_d, 1]' W [b_h, 1],

``a`` and ``b`` being two views of the LSTM's states; the root is a token before the first. Relations are scored in the
same way for arcs that are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import nashlearn.torch as nt
from nashlearn.datasets import Sentence

__all__ = ["Batch", "BiaffineParser", "Vocabulary", "train_parser"]

_PAD, _ROOT, _UNKNOWN = range(3)
_ENDINGS = (1, 2, 3)  # letters


class Batch(NamedTuple):
    """Sentences padded at the end to ``n`` tokens; the root stands before the first."""

    words: Tensor  # (b, n + 1)
    endings: Tensor  # (b, n + 1, 3)
    tags: Tensor  # (b, n + 1)
    mask: Tensor  # (b, n), True for tokens
    heads: Tensor  # (b, n), 0 where unknown
    relations: Tensor  # (b, n), -1 where unknown

    def to(self, device: Any) -> Batch:
        """The same on another device."""
        return Batch(*(tensor.to(device) for tensor in self))

    def rows(self, which: Any) -> Batch:
        """Some of the sentences, with no more padding than they need."""
        chosen = Batch(*(tensor[which] for tensor in self))
        n = int(chosen.mask.sum(1).max())
        return Batch(*(tensor[:, : n + (tensor.shape[1] > self.mask.shape[1])] for tensor in chosen))


class Vocabulary:
    """Numbers for the words, endings, tags and relations of training sentences; what is new later is *unknown*.

    Parameters
    ----------
    sentences : sequence of Sentence
    min_count : int
        Words seen less often are unknown.
    tags : bool
        Whether part-of-speech tags are read.
    """

    def __init__(self, sentences: Sequence[Sentence], min_count: int = 1, tags: bool = True):
        forms = Counter(form.lower() for sentence in sentences for form in sentence.forms)
        kept = [form for form, count in forms.items() if count >= min_count]
        endings = [sorted({form[-k:] for form in forms}) for k in _ENDINGS]
        self.words = {form: i for i, form in enumerate(sorted(kept), _UNKNOWN + 1)}
        self.endings = [{end: i for i, end in enumerate(one, _UNKNOWN + 1)} for one in endings]
        seen = sorted({tag for sentence in sentences for tag in sentence.upos}) if tags else []
        self.tags = {tag: i for i, tag in enumerate(seen, _UNKNOWN + 1)}
        self.relations = sorted({relation for sentence in sentences for relation in sentence.deprels})

    def batch(self, sentences: Sequence[Sentence]) -> Batch:
        """Sentences as padded tensors."""
        b, n = len(sentences), max(map(len, sentences))
        words, tags = torch.full((2, b, n + 1), _PAD)
        endings = torch.full((b, n + 1, len(_ENDINGS)), _PAD)
        mask, heads = torch.zeros((b, n), dtype=torch.bool), torch.zeros((b, n), dtype=torch.int64)
        relations = torch.full((b, n), -1)
        number = {name: i for i, name in enumerate(self.relations)}
        words[:, 0] = tags[:, 0] = endings[:, 0] = _ROOT
        for i, sentence in enumerate(sentences):
            m, forms = len(sentence), [form.lower() for form in sentence.forms]
            words[i, 1 : m + 1] = torch.tensor([self.words.get(form, _UNKNOWN) for form in forms])
            tags[i, 1 : m + 1] = torch.tensor([self.tags.get(tag, _UNKNOWN) for tag in sentence.upos])
            for j, (k, known) in enumerate(zip(_ENDINGS, self.endings, strict=True)):
                endings[i, 1 : m + 1, j] = torch.tensor([known.get(form[-k:], _UNKNOWN) for form in forms])
            mask[i, :m] = True
            heads[i, :m] = torch.as_tensor(np.maximum(sentence.heads, 0))
            relations[i, :m] = torch.tensor([number.get(name, -1) for name in sentence.deprels])
        return Batch(words, endings, tags, mask, heads, relations)


def _view(inputs: int, width: int, dropout: float) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, width), nn.LeakyReLU(0.1), nn.Dropout(dropout))


def _with_one(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_ones((*x.shape[:-1], 1))], dim=-1)


class BiaffineParser(nn.Module):
    """Scores of arcs and of their relations.

    Parameters
    ----------
    vocabulary : Vocabulary
        Of the training sentences.
    embedding, hidden, arc_width, label_width, layers : int
        Sizes: of a word's vector, of each direction of the LSTM, of the views that arcs and relations are scored with.
    dropout : float
        Share of units that are dropped in training, and of words that are made unknown.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        embedding: int = 100,
        hidden: int = 128,
        layers: int = 2,
        arc_width: int = 100,
        label_width: int = 50,
        dropout: float = 0.33,
    ):
        super().__init__()
        self.vocabulary, self.dropout = vocabulary, dropout
        part = embedding // 2

        def table(entries: Any, width: int) -> nn.Embedding:
            return nn.Embedding(_UNKNOWN + 1 + len(entries), width, padding_idx=_PAD)

        self.words, self.tags = table(vocabulary.words, embedding), table(vocabulary.tags, part)
        self.endings = nn.ModuleList(table(entries, part) for entries in vocabulary.endings)
        inputs = embedding + part * (1 + len(_ENDINGS))
        self.lstm = nn.LSTM(
            inputs, hidden, layers, batch_first=True, bidirectional=True, dropout=dropout if layers > 1 else 0.0
        )
        self.drop = nn.Dropout(dropout)
        self.arc_dependent, self.arc_head = (_view(2 * hidden, arc_width, dropout) for _ in range(2))
        self.label_dependent, self.label_head = (_view(2 * hidden, label_width, dropout) for _ in range(2))
        n_labels = max(len(vocabulary.relations), 1)
        self.arc_weight = nn.Parameter(torch.zeros(arc_width + 1, arc_width + 1))
        self.label_weight = nn.Parameter(torch.zeros(n_labels, label_width + 1, label_width + 1))

    def states(self, batch: Batch) -> Tensor:
        """States (b, n + 1, 2 hidden) of the root and the tokens."""
        words = batch.words
        if self.training and self.dropout:
            hidden = (torch.rand(words.shape, device=words.device) < self.dropout) & (words > _ROOT)
            words = words.masked_fill(hidden, _UNKNOWN)
        parts = [self.words(words), self.tags(batch.tags)]
        parts += [table(batch.endings[..., j]) for j, table in enumerate(self.endings)]
        lengths = (batch.mask.sum(1) + 1).cpu()
        packed = pack_padded_sequence(
            self.drop(torch.cat(parts, dim=-1)), lengths, batch_first=True, enforce_sorted=False
        )
        found, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=words.shape[1])
        return self.drop(found)

    def arc_views(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """What arcs are scored with: tokens as dependents (b, n, k + 1), root and tokens as heads (b, n + 1, k + 1)."""
        return _with_one(self.arc_dependent(states[:, 1:])), _with_one(self.arc_head(states))

    def label_views(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """What relations are scored with, in the same layout."""
        return _with_one(self.label_dependent(states[:, 1:])), _with_one(self.label_head(states))

    def arc_scores(self, batch: Batch, states: Tensor | None = None) -> Tensor:
        """Scores (b, n, n + 1) of each token with each head, as ``ArborescenceLoss`` takes them with the mask.

        Of padding they mean nothing. ``states`` are those of the batch, where they are known.
        """
        dependent, head = self.arc_views(self.states(batch) if states is None else states)
        return dependent @ self.arc_weight @ head.transpose(1, 2)

    def label_scores(self, batch: Batch, heads: Tensor, states: Tensor | None = None) -> Tensor:
        """Scores (b, n, labels) of the relations of each token to its head in ``heads`` (b, n)."""
        dependent, head = self.label_views(self.states(batch) if states is None else states)
        chosen = head.gather(1, heads.clamp(min=0)[..., None].expand(-1, -1, head.shape[2]))
        return torch.einsum("bni,lij,bnj->bnl", dependent, self.label_weight, chosen)

    @torch.no_grad()
    def predict(
        self, sentences: Sequence[Sentence], single_root: bool = True, batch_size: int = 128
    ) -> tuple[list[np.ndarray], list[list[str]]]:
        """Heads and relations of each sentence."""
        was_training, device = self.training, self.arc_weight.device
        self.eval()
        loss, heads, relations = nt.ArborescenceLoss(single_root=single_root), [], []
        for start in range(0, len(sentences), batch_size):
            part = sentences[start : start + batch_size]
            batch = self.vocabulary.batch(part).to(device)
            states = self.states(batch)
            found = loss.predict(self.arc_scores(batch, states), batch.mask)
            labels = self.label_scores(batch, found, states).argmax(2).cpu()
            for one, label, sentence in zip(found.cpu().numpy(), labels, part, strict=True):
                heads.append(one[: len(sentence)])
                relations.append([self.vocabulary.relations[i] for i in label[: len(sentence)].tolist()])
        self.train(was_training)
        return heads, relations


ArcLoss = Callable[[Tensor, Tensor, Tensor], Tensor]


def train_parser(
    parser: BiaffineParser,
    sentences: Sequence[Sentence],
    *,
    loss: ArcLoss | None = None,
    epochs: int = 20,
    batch_size: int = 32,
    lr: float = 2e-3,
    seed: int = 0,
) -> Iterator[float]:
    """Train end to end by Adam; one mean loss after each epoch, so that the caller may judge, keep or stop.

    Parameters
    ----------
    parser : BiaffineParser
    sentences : sequence of Sentence
        With their heads and relations.
    loss : callable, optional
        ``loss(scores, heads, mask)`` of arcs, ``ArborescenceLoss`` unless told otherwise; the cross-entropy of the
        relations, given the true heads, is added.
    epochs, batch_size : int
    lr : float
        Step size of Adam.
    seed : int
        Order of the sentences.
    """
    arcs, labels = loss or nt.ArborescenceLoss(smoothing=3.0, tol=1e-6), nn.CrossEntropyLoss(ignore_index=-1)
    optimiser = torch.optim.Adam(parser.parameters(), lr=lr, betas=(0.9, 0.9))
    order, whole = np.random.default_rng(seed), parser.vocabulary.batch(sentences).to(parser.arc_weight.device)
    for _ in range(epochs):
        parser.train()
        rows, total = order.permutation(len(sentences)), 0.0
        for start in range(0, rows.size, batch_size):
            batch = whole.rows(rows[start : start + batch_size])
            states = parser.states(batch)
            of_labels = parser.label_scores(batch, batch.heads, states)
            value = arcs(parser.arc_scores(batch, states), batch.heads, batch.mask)
            value = value + labels(of_labels.flatten(0, 1), batch.relations.flatten())
            optimiser.zero_grad()
            value.backward()
            nn.utils.clip_grad_norm_(parser.parameters(), 5.0)
            optimiser.step()
            total += float(value.detach()) * min(batch_size, rows.size - start)
        yield total / rows.size
