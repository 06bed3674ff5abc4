"""The tables of networks: how trees are pruned, what is hidden, and what the pages say of stored cells."""

from __future__ import annotations

import numpy as np
import pytest

from reproduce import hidden_chain, labelling, roles, sentiment, sudoku
from reproduce.store import Store

SENTENCE = """# sent_id = 1
We	PRP	(TOP(S(NP*)	-	-	(ARG0*)
gave	VBD	(VP*	give	give.01	(V*)
it	PRP	(NP*)	-	-	(ARG1*)
to	IN	(PP*	-	-	(ARG2*
Ann	NNP	(NP*)	-	-	*
yesterday	NN	*))	-	-	*)
.	.	*))	-	-	*

"""


def test_trees_are_pruned_around_the_verb():
    ((features, edges), labels) = next(iter(roles.propositions(SENTENCE.splitlines(keepends=True))))
    kinds = [x["kind"] for x in features]
    assert kinds == ["NP", "VBD", "NP", "PP", "IN", "NP", "NN", "."]
    assert labels.tolist() == ["A0", "V", "A1", "A2", "O", "O", "O", "O"]
    assert len(edges) == len(kinds) - 1
    assert {tuple(edge) for edge in edges.tolist()} >= {(3, 4), (3, 5), (3, 6)}


def test_a_word_may_look_like_a_comment():
    sentence = SENTENCE.replace("it\tPRP", "#\tNN")
    ((features, _), labels) = next(iter(roles.propositions(sentence.splitlines(keepends=True))))
    assert [x["first"] for x in features][2] == "#"
    assert labels.tolist() == ["A0", "V", "A1", "A2", "O", "O", "O", "O"]


def test_role_costs_and_their_difference(tmp_path):
    store = Store(tmp_path / "roles.jsonl")
    for method, cost in (("nash", 0.2), ("crf", 0.3), ("ssvm", 0.25)):
        key = ["roles", 0, method, "test", [3000, None], roles.GRIDS[method][0]]
        blocks = [0.6 * cost, 0.4 * cost]
        store.add(
            {"key": key, "cost": cost, "viterbi": 0.31, "error": 0.1, "blocks": blocks, "seconds": 1.0, "gap": 0.01}
        )
    page = roles.section(tmp_path)
    assert "Our mean cost is below the CRF's; the difference is -0.1000, with a standard error of 0.0141" in page
    assert "| mean | 0.2000 | 0.3000 | 0.2500 | 0.3100 |  |" in page


def test_related_cells_of_a_puzzle():
    assert len(sudoku.EDGES) == 810
    assert (np.bincount(sudoku.EDGES.ravel()) == 20).all()


def test_hidden_chains_are_those_of_the_paper():
    x, y = hidden_chain.draw(200, 0, 0)
    assert np.mean(x == y) == pytest.approx(0.7, abs=0.01)
    assert np.mean(y[:, 1:] == y[:, :-1]) == pytest.approx(0.7, abs=0.01)
    assert np.mean(hidden_chain.bayes(x, 0) != y) == pytest.approx(0.2013, abs=0.015)


def test_pixels_of_a_grid_and_their_likeness():
    image = np.zeros((3, 3, 3), dtype=np.uint8)
    image[0, 0] = 255
    edges, features = labelling._grid(image)
    assert len(edges) == 12
    beside, above = features[:6], features[6:]
    assert (beside[:, 0] == 1.0).all() and (above[:, 5] == 1.0).all()
    assert not beside[:, 5:].any() and not above[:, :5].any()
    likeness = features[:, 1:4] + features[:, 6:9]  # at three scales
    assert (likeness[edges.min(axis=1) > 0] == 1.0).all()
    assert 0.0 < likeness[0, 0] < likeness[0, 1] < likeness[0, 2] < 1.0
    assert labelling._colours(image).shape == (9, 15)
    assert labelling._surroundings(image).shape == (9, 33)


def test_pages_of_what_is_stored(tmp_path):
    for part in (hidden_chain, sudoku, sentiment, roles, labelling):
        assert part.section(tmp_path) == ""
    store = Store(tmp_path / "sudoku.jsonl")
    base = ["sudoku", "visual", 100, 0.1, "nash", 0]
    for alpha, wrong in ((1e-3, 0.2), (1e-4, 0.1)):
        store.add({"key": [*base, 0, alpha], "validation": wrong, "seconds": 3.0, "gap": 0.1})
    for m in (100, 1000):  # the latter has no validation of its own
        assert sudoku._chosen(store, ["sudoku", "visual", m, 0.1, "nash", 0]) == 1e-4
    told = {"puzzles": 0.05, "hamming": 0.01, "unproved": 2, "decoding": 0.5, "seconds": 3.0, "gap": 0.1}
    store.add({"key": [*base, 100, 1e-4], **told})
    page = sudoku.section(tmp_path)
    assert "| visual | 10% | 100 | 42.6 | 5.0 (0.0100) | 36.2 | – | 3 s | 0.50 s, 2 | 1 |" in page
    store = Store(tmp_path / "sentiment.jsonl")
    for method, loss in (("nash", 0.4), ("crf", 0.5), ("ssvm", 0.5)):
        base = ["sentiment", "zero_one, unweighted", method]
        for settings in sentiment.GRIDS[method]:  # the first of the grid is the best
            for fold in range(3):
                store.add({"key": [*base, "fold", fold, settings], "loss": loss + settings["alpha"] * -1.0})
        for split in range(8):
            store.add({"key": [*base, "split", split, sentiment.GRIDS[method][0]], "loss": loss + 0.01 * split})
    page = sentiment.section(tmp_path)
    assert "not worse (Wilcoxon, 0.05) on 1 of 1 losses" in page
    assert "| 0.4350 |" in page
