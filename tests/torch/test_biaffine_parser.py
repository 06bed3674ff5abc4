"""The neural parser: padding changes nothing, the tree loss trains it end to end, and it answers with trees."""

from __future__ import annotations

import numpy as np
import pytest

from nashlearn import datasets, parsing

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from example import example  # noqa: E402

biaffine = example("biaffine")

TAGS = {"the": "DET", "old": "ADJ", "dog": "NOUN", "cat": "NOUN", "sees": "VERB", "fast": "ADV"}


def treebank(count: int, seed: int) -> list[datasets.Sentence]:
    """The (old) dog sees the (old) cat (fast)."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        first, second = (["the", *(["old"] * rng.integers(0, 2)), noun] for noun in rng.permutation(["dog", "cat"]))
        words = [*first, "sees", *second, *(["fast"] * rng.integers(0, 2))]
        verb, last = len(first) + 1, len(first) + 1 + len(second)
        lines = []
        for i, word in enumerate(words, 1):
            noun = verb - 1 if i < verb else last
            head = 0 if i == verb else verb if i in (verb - 1, last) or word == "fast" else noun
            row = [str(i), word, word, TAGS[word], "_", "_", str(head), "root" if head == 0 else TAGS[word], "_", "_"]
            lines.append("\t".join(row))
        found += list(datasets.parse_conllu(lines))
    return found


def test_padding_and_company_change_nothing():
    sentences = treebank(6, 0)
    torch.manual_seed(0)
    parser = biaffine.BiaffineParser(biaffine.Vocabulary(sentences), hidden=8, arc_width=6, embedding=8).eval()
    torch.nn.init.normal_(parser.arc_weight)
    together = parser.vocabulary.batch(sentences)
    scores = parser.arc_scores(together)
    for i, sentence in enumerate(sentences):
        n = len(sentence)
        alone = parser.arc_scores(parser.vocabulary.batch([sentence]))
        assert torch.allclose(scores[i, :n, : n + 1], alone[0], atol=1e-6)
        assert together.mask[i].sum() == n and (together.heads[i, :n].numpy() == sentence.heads).all()
    part = together.rows(torch.tensor([2]))
    assert part.mask.shape == (1, len(sentences[2])) and part.words.shape == (1, len(sentences[2]) + 1)
    assert torch.allclose(
        parser.arc_scores(part)[0], scores[2, : len(sentences[2]), : len(sentences[2]) + 1], atol=1e-6
    )


@pytest.mark.parametrize("tags", [True, False])
def test_the_tree_loss_trains_it_end_to_end(tags):
    train, test = treebank(40, 0), treebank(20, 1)
    torch.manual_seed(0)
    parser = biaffine.BiaffineParser(biaffine.Vocabulary(train, tags=tags), hidden=16, arc_width=16, dropout=0.1)
    losses = list(biaffine.train_parser(parser, train, epochs=20, batch_size=8, lr=1e-2))
    assert len(losses) == 20 and losses[-1] < 0.3 * losses[0]
    heads, relations = parser.predict(test)
    truth = [one.heads for one in test]
    assert parsing.attachment(heads, truth) == 1.0
    assert parsing.attachment(heads, truth, relations, [one.deprels for one in test]) == 1.0


def test_unknown_words_and_other_losses():
    train = treebank(10, 0)
    vocabulary = biaffine.Vocabulary(train, min_count=2)
    torch.manual_seed(0)
    parser = biaffine.BiaffineParser(vocabulary, hidden=8, arc_width=6, embedding=8, layers=1)

    def cross_entropy(scores, heads, mask):
        return torch.nn.functional.cross_entropy(scores[mask], heads[mask])

    before = parser.arc_weight.clone()
    list(biaffine.train_parser(parser, train[:1], loss=cross_entropy, epochs=2))
    assert not torch.equal(parser.arc_weight, before)
    lines = [
        "1\tzebras\t_\tX\t_\t_\t_\t_\t_\t_",
        "2\tsee\t_\tVERB\t_\t_\t_\t_\t_\t_",
        "3\tus\t_\tPRON\t_\t_\t_\t_\t_\t_",
    ]
    heads, relations = parser.predict(list(datasets.parse_conllu(lines)))
    assert np.count_nonzero(heads[0] == 0) == 1 and len(relations[0]) == 3
    assert set(relations[0]) <= set(vocabulary.relations)
