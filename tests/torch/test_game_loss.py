"""The loss of any game against the game itself: values, gradients, predictions, padding, and what PyTorch asks."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from loss_cases import on_each_device  # noqa: E402

import nashlearn.torch as nt  # noqa: E402
from nashlearn import Game, games  # noqa: E402
from nashlearn.torch.game_loss import _Table  # noqa: E402


class SomeOf:
    """Which ``k`` of ``n`` items: a polytope that the library does not have. A label is a set as n truth values."""

    def __init__(self, k, n):
        self.k, self.shape = k, (n,)

    def argmax(self, scores):
        best = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(best, np.argsort(-scores, axis=1)[:, : self.k], True, axis=1)
        return best

    def vertex(self, labels):
        labels = np.asarray(labels)
        if (labels.sum(axis=1) != self.k).any():
            raise ValueError(f"labels must be sets of {self.k} items")
        return labels.astype(float)


def some_of(n):
    """Two of ``n`` items; what counts is how many of them were missed."""
    pick = SomeOf(2, n)
    return Game(pick, pick, np.full((n, n), 0.5) - np.eye(n))


CHAIN = [(0, 1), (1, 2)]
GAMES = {
    "single labels": games.zero_one(4),
    "cost matrix": games.cost([[0.0, 2.0, 1.0], [1.0, 0.0, 4.0]]),
    "matching": games.matching(3),
    "partial matching": games.partial_matching(2, 3),
    "trees": games.arborescence(3, single_root=True),
    "spanning tree": games.spanning_tree([(0, 1), (1, 2), (0, 2), (2, 3), (1, 3)]),
    "own polytopes": some_of(5),
    "chain": games.markov(CHAIN, 2),
}
SMOOTH = ["matching", "partial matching", "trees", "chain"]
every_game = pytest.mark.parametrize("name", GAMES)


def batch(game, b=6, seed=0, dtype=torch.float64, device="cpu"):
    """Scores that need a gradient, and labels of the game."""
    rng = np.random.default_rng(seed)
    y = game.argmax(rng.standard_normal((b, *game.shape)))
    scores = torch.tensor(rng.standard_normal((b, *game.shape)), dtype=dtype, device=device)
    return scores.requires_grad_(), y


@on_each_device
@every_game
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_values_and_predictions_are_the_games(name, dtype, device):
    game = GAMES[name]
    scores, y = batch(game, dtype=dtype, device=device)
    loss = nt.GameLoss(game, reduction="none")
    value = loss(scores, torch.as_tensor(y, device=device))
    x = scores.detach().double().cpu().numpy()
    near = {torch.float64: 1e-6, torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}[dtype]
    assert value.dtype == dtype and value.device == scores.device
    assert np.abs(value.detach().double().cpu().numpy() - game.loss_value(x, y)).max() < near
    p = loss.predict_proba(scores)
    assert p.dtype == dtype and p.device == scores.device
    assert np.abs(game.upper(x, p.double().cpu().numpy()) - game.solve(x).value).max() < 4 * near
    assert np.array_equal(loss.predict(scores).cpu(), game.argmax(x))
    assert torch.equal(loss(scores, y.tolist()), value) and torch.equal(loss(scores, y), value)


@on_each_device
@every_game
def test_subgradient_inequality_and_reductions(name, device):
    game = GAMES[name]
    scores, y = batch(game, device=device)
    each = nt.GameLoss(game, reduction="none")(scores, y)
    total = nt.GameLoss(game, reduction="sum")(scores, y)
    assert total.item() == pytest.approx(each.sum().item())
    assert nt.GameLoss(game)(scores, y).item() == pytest.approx(each.mean().item())
    change = torch.autograd.grad(total, scores)[0]
    elsewhere, _ = batch(game, seed=1, device=device)
    assert nt.GameLoss(game, reduction="sum")(elsewhere, y) >= total + (change * (elsewhere - scores)).sum() - 1e-6
    weighted = torch.autograd.grad(
        nt.GameLoss(game, reduction="none")(scores, y) @ torch.arange(6.0).to(scores), scores
    )
    assert torch.allclose(weighted[0], change * torch.arange(6.0).to(scores).reshape(-1, *[1] * len(game.shape)))


@pytest.mark.parametrize("name", SMOOTH)
def test_smoothed_losses_pass_gradcheck_and_are_never_negative(name):
    game = GAMES[name]
    scores, y = batch(game, b=2)
    loss = nt.GameLoss(game, smoothing=1.0, tol=1e-10, reduction="none")
    assert torch.autograd.gradcheck(lambda s: loss(s, y), scores, eps=1e-4, atol=1e-3)
    sure = 100 * torch.tensor(game.vertex(y)) - 50
    assert (loss(sure, y) >= -1e-9).all() and (loss(sure, y) < 1e-3).all()


def test_gradients_of_own_polytopes_off_ties():
    scores, y = batch(GAMES["own polytopes"], b=3, seed=4)
    loss = nt.GameLoss(GAMES["own polytopes"], tol=1e-12)
    assert torch.autograd.gradcheck(lambda s: loss(s, y), scores, eps=1e-6, atol=1e-5)


def test_scores_of_nodes_and_edges_are_packed():
    game = GAMES["chain"]
    packed, y = batch(game)
    node, edge = packed[:, :6].reshape(6, 3, 2), packed[:, 6:].reshape(6, 2, 2, 2)
    loss = nt.GameLoss(game, smoothing=0.5, reduction="none", tol=1e-9)
    assert torch.equal(loss((node, edge), y), loss(packed, y))
    own = nt.MarkovLoss(smoothing=0.5, reduction="none", tol=1e-9)(node, edge, torch.as_tensor(y))
    assert torch.allclose(own, loss(packed, y), atol=1e-6)


@on_each_device
def test_instances_of_different_sizes(device):
    sizes, rng = (3, 5, 0, 4, 5), np.random.default_rng(0)
    scores, y = torch.full((5, 6), torch.nan, dtype=torch.float64), np.zeros((5, 6), dtype=bool)
    for i, n in enumerate(sizes):
        scores[i, :n] = torch.tensor(rng.standard_normal(n))
        y[i, :2] = n > 0
    mask = (torch.arange(6) < torch.tensor(sizes)[:, None]).to(device)
    scores = scores.to(device).requires_grad_()
    loss = nt.GameLoss(some_of, reduction="none")
    value = loss(scores, y, mask)
    value.sum().backward()
    p, best = loss.predict_proba(scores, mask), loss.predict(scores, mask)
    for i, n in enumerate(sizes):
        assert not scores.grad[i, n:].any() and not p[i, n:].any()
        if n:
            alone = nt.GameLoss(some_of(n), reduction="none")
            x = scores[i : i + 1, :n].detach().requires_grad_()
            assert alone(x, y[i : i + 1, :n]).item() == pytest.approx(value[i].item(), abs=1e-6)
            assert torch.equal(best[i : i + 1, :n], alone.predict(x))
    assert value[2] == 0
    assert nt.GameLoss(some_of)(scores, y, mask).item() == pytest.approx(value.mean().item())


@every_game
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_score_spoils_its_instance_alone(name, bad):
    scores, y = batch(GAMES[name])
    right = nt.GameLoss(GAMES[name], reduction="none")(scores, y)
    with torch.no_grad():
        scores.flatten(1)[2, 0] = bad
    value = nt.GameLoss(GAMES[name], reduction="none")(scores, y)
    value.sum().backward()
    others = torch.arange(6) != 2
    assert value[2].isnan() and torch.allclose(value[others], right[others])
    assert scores.grad[2].isnan().all() and scores.grad[others].isfinite().all()
    assert nt.GameLoss(GAMES[name]).predict_proba(scores)[2].isnan().all()


@on_each_device
def test_autocast_and_second_derivatives(device):
    scores, y = batch(GAMES["matching"], dtype=torch.bfloat16, device=device)
    loss = nt.GameLoss(GAMES["matching"])
    with torch.autocast(device, dtype=torch.bfloat16):
        value = loss(scores, y)
    assert value.dtype == torch.float32
    gradient = torch.autograd.grad(value, scores, create_graph=True)[0]
    assert gradient.dtype == torch.bfloat16
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(gradient.sum(), scores)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
@on_each_device
@pytest.mark.parametrize("name", ["own polytopes", "matching", "chain"])
def test_compiles_without_a_graph_break(name, device):
    torch._dynamo.reset()
    scores, y = batch(GAMES[name], device=device)
    y = torch.as_tensor(y, device=device)
    loss = nt.GameLoss(GAMES[name])
    compiled = torch.compile(lambda x, y: loss(2 * x, y), fullgraph=True, backend="aot_eager")
    value, right = compiled(scores, y), loss(2 * scores, y)
    assert torch.equal(value, right)
    assert torch.equal(torch.autograd.grad(value, scores)[0], torch.autograd.grad(right, scores)[0])


def test_the_operator_passes_pytorchs_own_checks():
    scores, y = batch(GAMES["trees"])
    loss = nt.GameLoss(GAMES["trees"])
    arguments = (scores.detach(), torch.as_tensor(y), None, loss._table.name, 0.0, 1e-7)
    checks = ("test_schema", "test_faketensor")
    found = torch.library.opcheck(torch.ops.nashlearn.game.default, arguments, test_utils=checks)
    assert found == dict.fromkeys(checks, "SUCCESS")


@pytest.mark.parametrize("make", [copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss))])
def test_copies_work_and_nothing_is_left_of_losses_that_are_gone(make):
    gc.collect()
    before = len(_Table._open)
    scores, y = batch(GAMES["trees"])
    loss = nt.ArborescenceLoss()
    right = loss(scores, y)
    other = make(loss)
    assert other._table.name != loss._table.name and not other.state_dict()
    del loss
    assert torch.equal(other(scores, y), right)
    del other
    gc.collect()
    assert len(_Table._open) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nt.GameLoss("zero_one"), "game must be a game, or a callable"),
        (lambda: nt.GameLoss(torch.eye(2)), "game must be a game, or a callable"),
        (lambda: nt.GameLoss(games.matching(2), reduction="all"), "reduction"),
        (lambda: nt.GameLoss(games.matching(2), smoothing=-1.0), "smoothing"),
        (lambda: nt.GameLoss(games.matching(2), tol=-1.0), "tol"),
        (lambda: nt.GameLoss(some_of(3), smoothing=1.0)(torch.zeros(1, 3), [[1, 1, 0]]), "smoothing must be 0"),
        (lambda: nt.GameLoss(games.matching(2))(torch.zeros(1, 2, 3), [[0, 1]]), r"shape \(b, 2, 2\)"),
        (lambda: nt.GameLoss(games.matching(2))(torch.zeros(1, 2, 2).long(), [[0, 1]]), "floating point"),
        (lambda: nt.GameLoss(games.matching(2))(torch.zeros(2, 2, 2), [[0, 1]]), "each of the 2 instances; got 1"),
        (lambda: nt.GameLoss(some_of(3))(torch.zeros(2, 3), [[1, 1, 0], [1, 1, 1]]), r"target\[1\].*sets of 2"),
        (lambda: nt.GameLoss(some_of(3))(torch.zeros(2, 3), torch.full((2, 1), 2)), r"target\[0\].*shape \(3,\)"),
        (lambda: nt.GameLoss(some_of(3))(torch.zeros(1, 3), [[1, 1, 0]], torch.ones(1, 3) > 0), "mask must be None"),
        (lambda: nt.GameLoss(some_of)(torch.zeros(1, 3), [[1, 1, 0]], torch.ones(1, 3)), "mask must be boolean"),
        (lambda: nt.NashLoss(games.matching(2)), r"GameLoss"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
