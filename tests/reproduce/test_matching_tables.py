"""The table of matchings and that of tracks in their reduced profile, how they count, and the structured SVM."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nashlearn.training.designs.pairs import Example, PairFeatures, matching_games
from reproduce import matching, matching_page, page, tracks
from reproduce.papers import PAPERS
from reproduce.protocol import QUICK
from reproduce.references.ssvm_matching import structured_svm


def doubled(partners: np.ndarray, n2: int, k: int) -> np.ndarray:
    """A permutation of 2 k nodes: visible ones as given, all others paired in order."""
    answer = np.full(2 * k, -1)
    left = np.flatnonzero(partners >= 0)
    answer[left] = partners[left]
    free = [j for j in range(2 * k) if j not in set(partners[left].tolist())]
    hidden = [j for j in free if j >= n2]
    for i in np.flatnonzero(partners < 0):
        answer[i] = hidden.pop(0)
        free.remove(answer[i])
    for i in range(len(partners), 2 * k):
        answer[i] = free.pop(0)
    return answer


@given(seed=st.integers(0, 10**6))
def test_mistakes_are_those_of_the_doubled_matching_at_its_best_naming(seed):
    rng = np.random.default_rng(seed)
    n1, n2 = rng.integers(0, 3, size=2)
    k = 2
    one, two = (rng.permutation(np.r_[np.arange(n2), np.full(n1, -1)])[:n1] for _ in range(2))
    a, b = doubled(one, n2, k), doubled(two, n2, k)
    fewest = min(
        int((relabelled != b).sum())
        for rows in permutations(range(n1, 2 * k))
        for columns in permutations(range(n2, 2 * k))
        for relabelled in [np.r_[np.arange(n2), columns][a[np.r_[np.arange(n1), rows]]]]
    )
    assert sum(matching.hamming(one, two, n2)) == fewest


def test_structured_svm_reaches_its_optimum():
    """Against the same objective by subgradients at the optimum: no matching may be violated more than the slack."""
    rng = np.random.default_rng(0)
    examples, y = [], []
    for _ in range(12):
        pairs = rng.normal(size=(3, 3, 2))
        examples.append(Example(pairs, np.ones((3, 1)), np.ones((3, 1))))
        y.append(rng.permutation([0, 1, 2, -1, -1])[:3])
    plays, alpha = matching_games(examples), 0.05
    design, trained = PairFeatures(examples, plays), structured_svm(examples, y, alpha, tol=1e-6)
    assert 0 <= trained.dual_gap <= 1e-6
    truth = plays.vertices(y)

    def objective(w):
        theta = design.scores(w)
        losses = 0.0
        for matrix, partners, vertex in zip(plays.split(theta), y, plays.split(truth), strict=True):
            every = [p[:3] for p in permutations([0, 1, 2, -1, -1, -1], 3)]
            values = []
            for other in set(every):
                other = np.array(other)
                entered = [j for j in range(3) if j not in other]
                score = sum(matrix[i, j] for i, j in enumerate(other)) + matrix[3, entered].sum()
                values.append(score + (other != partners).sum() - (matrix * vertex).sum())
            losses += max(values)
        return 0.5 * alpha * w @ w + losses / 36

    assert objective(trained.w) == pytest.approx(trained.objective, abs=1e-9)
    for _ in range(50):
        assert objective(trained.w + 0.01 * rng.normal(size=4)) >= trained.objective * (1 - 1e-6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of the reduced profile."""
    return tmp_path_factory.mktemp("results")


@pytest.mark.data
def test_reduced_table_of_matchings(folder):
    store = matching.run("table12", QUICK, folder)
    tested = {record["key"][2]: record for record in store if record["key"][4] == "test"}
    assert list(tested) == list(matching.METHODS)
    for method, record in tested.items():
        nodes, objects = matching_page.accuracies(record)
        if method == "chance":
            assert 0.5 < nodes.mean() < 0.8 and objects.mean() < 0.4
        else:
            assert objects.mean() > 0.99 and record["gap"] <= matching.FINAL_TOL
        assert record["nodes"] == PAPERS["XIII"]["columns"]["elements"][1]
    text = page.write(folder, QUICK).read_text()
    assert "## table12" in text and "0.662 (0.08)" in text


@pytest.mark.data
def test_reduced_table_of_tracks(folder):
    pytest.importorskip("motmetrics")
    found = {tuple(record["key"][2:]): record for record in tracks.run("tracking", QUICK, folder)}
    assert found["nash", "boxes"]["mota"] == found["nash", "boxes"]["idf1"] == 1.0
    for what in ("mota", "idf1"):
        assert found["nash", "detections"][what] >= found["overlap", "detections"][what] > 0.2
    assert "Not below overlap in MOTA and IDF1 on 1 of 1 videos." in page.write(folder, QUICK).read_text()


def test_published_figures_are_complete():
    printed = PAPERS["XII"]
    assert len(printed["sets"]) == len(matching.PAIRS)
    for column in printed["columns"].values():
        assert len(column["mean"]) == len(column["sd"]) == len(matching.PAIRS)
