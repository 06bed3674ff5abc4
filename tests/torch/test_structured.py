"""The losses of matchings and trees against the NumPy games, with padding."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import nashlearn.torch as nt  # noqa: E402
from nashlearn import games  # noqa: E402

LENGTHS = (4, 2, 5, 4, 1)
CASES = {
    "matching": (lambda **s: nt.MatchingLoss(tol=1e-10, **s), games.matching, 0),
    "trees": (lambda **s: nt.ArborescenceLoss(single_root=False, **s), games.arborescence, 1),
    "trees, single root": (lambda **s: nt.ArborescenceLoss(**s), lambda n: games.arborescence(n, True), 1),
}
every_case = pytest.mark.parametrize("name", CASES)


def batch(name, dtype=torch.float64):
    """Padded scores, targets that are structures, mask; padding holds what must not matter."""
    _, make, extra = CASES[name]
    rng = np.random.default_rng(0)
    n = max(LENGTHS)
    scores = np.full((len(LENGTHS), n, n + extra), np.nan)
    target = np.full((len(LENGTHS), n), -5)
    for i, m in enumerate(LENGTHS):
        scores[i, :m, : m + extra] = rng.standard_normal((m, m + extra))
        target[i, :m] = make(m).argmax(rng.standard_normal((1, m, m + extra)))[0]
    mask = torch.arange(n) < torch.tensor(LENGTHS)[:, None]
    return torch.tensor(scores, dtype=dtype).requires_grad_(), torch.tensor(target), mask


@every_case
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_values_gradients_and_predictions_are_the_games(name, smoothing, dtype):
    build, make, extra = CASES[name]
    scores, target, mask = batch(name, dtype)
    loss = build(smoothing=smoothing, reduction="none")
    value = loss(scores, target, mask)
    (3 * value.sum()).backward()
    near = 1e-6 if dtype == torch.float64 else 1e-4
    answer, p = loss.predict(scores, mask), loss.predict_proba(scores, mask)
    for i, m in enumerate(LENGTHS):
        game = make(m)
        x = scores[i : i + 1, :m, : m + extra].detach().double().numpy()
        y = target[i : i + 1, :m].numpy()
        found = game.solve(x, smoothing=smoothing)
        assert abs(value[i].item() - game.loss_value(x, y, smoothing)[0]) < near
        if smoothing:  # q is unique
            change = scores.grad[i, :m, : m + extra].double().numpy() / 3 + game.vertex(y)[0]
            assert np.abs(change - found.q[0]).max() < 1e-3
        assert np.array_equal(answer[i, :m], game.argmax(x)[0])
        assert (answer[i, m:] == -1).all()
        assert p[i, :m].sum(1) == pytest.approx(1.0, abs=1e-4)
        assert not p[i, m:].any()
        assert not scores.grad[i, m:].any()


@every_case
def test_subgradient_inequality(name):
    scores, target, mask = batch(name)
    build, _, _ = CASES[name]
    loss = build(reduction="sum")
    value = loss(scores, target, mask)
    value.backward()
    other = torch.where(scores.isnan(), scores, torch.randn(scores.shape, generator=torch.Generator().manual_seed(2)))
    plane = value + (scores.grad * (other - scores).nan_to_num()).sum()
    assert loss(other, target, mask) >= plane - 1e-6


@every_case
def test_mean_is_over_elements_and_smooth_games_pass_gradcheck(name):
    scores, target, mask = batch(name)
    build, _, _ = CASES[name]
    each = build(reduction="none")(scores, target, mask)
    assert build()(scores, target, mask).item() == pytest.approx(each.sum().item() / sum(LENGTHS))
    one, y = scores[0:1, :4, : 4 + CASES[name][2]].detach().requires_grad_(), target[0:1, :4]
    smooth = build(smoothing=1.0)
    assert torch.autograd.gradcheck(lambda s: smooth(s, y), one, eps=1e-4, atol=1e-3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
def test_compiles_without_a_graph_break():
    torch._dynamo.reset()
    scores, target, mask = batch("matching")
    loss = nt.MatchingLoss()
    value = torch.compile(loss, fullgraph=True, backend="aot_eager")(scores, target, mask)
    gradient = torch.autograd.grad(value, scores)[0]
    assert torch.equal(gradient, torch.autograd.grad(loss(scores, target, mask), scores)[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nt.MatchingLoss(reduction="all"), "reduction"),
        (lambda: nt.ArborescenceLoss(smoothing=-1), "smoothing"),
        (lambda: nt.MatchingLoss()(torch.zeros(1, 2, 3), torch.zeros(1, 2).long()), r"\(b, 2, 2\)"),
        (lambda: nt.ArborescenceLoss()(torch.zeros(1, 2, 2), torch.zeros(1, 2).long()), r"\(b, 2, 3\)"),
        (lambda: nt.MatchingLoss()(torch.zeros(1, 2, 2), torch.zeros(1, 2)), "target"),
        (lambda: nt.MatchingLoss()(torch.zeros(1, 2, 2), torch.zeros(1, 2).long(), torch.ones(1, 2)), "mask"),
        (lambda: nt.MatchingLoss(smoothing=float("inf")), "smoothing"),
        (lambda: nt.MatchingLoss()(torch.zeros(2, 2, 2), torch.tensor([[0, 1], [1, 1]])), r"target\[1\].* 1 twice"),
        (lambda: nt.MatchingLoss()(torch.zeros(1, 2, 2), torch.tensor([[0, -1]])), r"target\[0\].*got -1"),
        (lambda: nt.ArborescenceLoss()(torch.zeros(1, 2, 3), torch.tensor([[2, 1]])), r"target\[0\].* cycle"),
        (lambda: nt.MatchingLoss()(torch.zeros(1, 2, 2), torch.tensor([[1, 0]]), torch.eye(2)[:1] > 0), r"got 1"),
        (lambda: nt.MatchingLoss()(torch.zeros(1, 2, 2), torch.tensor([[0, 1]]), torch.eye(2)[1:] > 0), r"mask\[0\]"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
