"""The loss of Markov networks against the NumPy game: chains with padding, trees, cycles, smoothed and not."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import nashlearn.torch as nt  # noqa: E402
from nashlearn import games  # noqa: E402

LENGTHS = (4, 0, 5, 1, 2)
EDGES = {"tree": [(0, 2), (2, 1), (2, 3), (4, 3)], "cycle": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]}
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
every_device = pytest.mark.parametrize("device", DEVICES)
every_table = pytest.mark.parametrize("tables", ["shared", "own", "alike"])


def batch(tables="shared", k=3, lengths=LENGTHS, dtype=torch.float64, scale=1.0, device="cpu", seed=0, m=None):
    """Scores, labels and mask; padding of the nodes holds what must not matter."""
    rng = np.random.default_rng(seed)
    b, n = len(lengths), max(lengths)
    m = n - 1 if m is None else m
    shape = {"shared": (k, k), "own": (b, m, k, k), "alike": (m, k, k)}[tables]
    mask = np.arange(n) < np.array(lengths)[:, None]
    node = np.where(mask[:, :, None], scale * rng.standard_normal((b, n, k)), np.nan)
    y = np.where(mask, rng.integers(0, k, (b, n)), -7)
    made = [torch.tensor(x, dtype=dtype, device=device) for x in (node, scale * rng.standard_normal(shape))]
    return [x.requires_grad_() for x in made], torch.tensor(y, device=device), torch.tensor(mask, device=device)


def one_of(tables, edge, i, m):
    """The tables (m, k, k) of instance ``i``."""
    T = edge.detach().double().cpu().numpy()
    return np.broadcast_to(T, (m, *T.shape)) if tables == "shared" else T[i, :m] if tables == "own" else T[:m]


def chain(n, k, loss="zero_one"):
    return games.markov(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), np.full(n, k), loss=loss)


@every_device
@every_table
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_chains_are_the_games(tables, smoothing, device):
    (node, edge), y, mask = batch(tables, device=device)
    loss = nt.MarkovLoss(smoothing=smoothing, tol=1e-9, reduction="none")
    value = loss(node, edge, y, mask)
    (3 * value.sum()).backward()
    found = loss.solve(node, edge, mask)
    labels, total = loss.predict(node, edge, mask).cpu(), np.zeros(tuple(edge.shape))
    for i, n in enumerate(LENGTHS):
        assert not node.grad[i, n:].any()
        assert not found.p[i, n:].any()
        assert (labels[i, n:] == -1).all()
        if n == 0:
            assert value[i] == 0
            continue
        game, x = chain(n, 3), (node[i, :n].detach().cpu().numpy(), one_of(tables, edge, i, n - 1))
        truth = y[i, :n].cpu().numpy()
        expected = game.solve(x, smoothing=smoothing, tol=1e-10)
        assert value[i].item() == pytest.approx(game.loss_value(x, truth, smoothing), abs=1e-6)
        assert found.value[i].item() == pytest.approx(float(expected.value), abs=1e-6)
        assert found.gap[i].item() <= 1e-6
        assert found.p[i, :n].sum(1).cpu() == pytest.approx(1.0)
        assert game.score(x, labels[i, :n].numpy()) == pytest.approx(game.score(x, game.argmax(x)))
        pairs = expected.q[1].copy()
        pairs[np.arange(n - 1), truth[:-1], truth[1:]] -= 1.0
        if tables == "own":
            total[i, : n - 1] = pairs
        elif tables == "alike":
            total[: n - 1] += pairs
        else:
            total += pairs.sum(axis=0)
        if smoothing:  # q is unique
            change = node.grad[i, :n].cpu().numpy() / 3
            change[np.arange(n), truth] += 1.0
            assert np.abs(change - expected.q[0]).max() < 1e-4
    if smoothing:
        assert np.abs(edge.grad.cpu().numpy() / 3 - total).max() < 1e-4


@every_device
@pytest.mark.parametrize("k", [1, 17, 40, 100])
def test_other_label_counts(k, device):
    (node, edge), y, mask = batch(k=k, lengths=(3, 2), device=device, dtype=torch.float32)
    loss = nt.MarkovLoss(smoothing=1.0, tol=1e-5, reduction="none")
    value = loss(node, edge, y, mask)
    for i, n in enumerate((3, 2)):
        x = node[i, :n].detach().double().cpu().numpy(), one_of("shared", edge, i, n - 1)
        assert value[i].item() == pytest.approx(chain(n, k).loss_value(x, y[i, :n].cpu().numpy(), 1.0), abs=1e-4)
    value.sum().backward()
    assert node.grad[mask].sum(-1).cpu() == pytest.approx(0.0, abs=1e-5)
    assert edge.grad.sum().item() == pytest.approx(0.0, abs=1e-5)


@every_device
@every_table
def test_any_range_of_scores(tables, device):
    """Far beyond what exponentials hold, and with labels and pairs forbidden."""
    (node, edge), _, mask = batch(tables, k=4, scale=200.0, device=device)
    with torch.no_grad():
        node[0, 1, 2] = -torch.inf
        edge[..., 0, 1] = -torch.inf
    loss = nt.MarkovLoss(smoothing=0.1, tol=1e-8, reduction="none")
    found = loss.solve(node, edge, mask)
    for i, n in enumerate(LENGTHS):
        if n:
            x = node[i, :n].detach().cpu().numpy(), one_of(tables, edge, i, n - 1)
            assert found.value[i].item() == pytest.approx(float(chain(n, 4).solve(x, smoothing=0.1).value), abs=1e-5)


@pytest.mark.parametrize("graph", EDGES)
@pytest.mark.parametrize("tables", ["shared", "own"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_other_graphs(graph, tables, smoothing):
    (node, edge), y, _ = batch(tables, lengths=(5, 5), m=len(EDGES[graph]))
    mask = torch.tensor([[True] * 5, [True, False, True, True, True]])
    loss = nt.MarkovLoss(smoothing=smoothing, tol=1e-8, reduction="none")
    value = loss(node, edge, y, mask, EDGES[graph])
    value.sum().backward()
    p, labels = loss.predict_proba(node, edge, mask, EDGES[graph]), loss.predict(node, edge, mask, EDGES[graph])
    assert not node.grad[~mask].any()
    assert not p[~mask].any()
    assert (labels[~mask] == -1).all()
    for i in range(2):
        here = np.flatnonzero(mask[i])
        number = {v: j for j, v in enumerate(here.tolist())}
        kept = [e for e, (u, v) in enumerate(EDGES[graph]) if u in number and v in number]
        game = games.markov([[number[u] for u in EDGES[graph][e]] for e in kept], np.full(here.size, 3))
        T = edge.detach().numpy()
        x = node[i].detach().numpy()[here], np.broadcast_to(T, (5, 3, 3))[kept] if tables == "shared" else T[i][kept]
        assert value[i].item() == pytest.approx(game.loss_value(x, y[i].numpy()[here], smoothing), abs=1e-5)
        assert game.score(x, labels[i, here].numpy()) == pytest.approx(game.score(x, game.argmax(x)))


@pytest.mark.parametrize("loss", ["absolute", "squared", [[0.0, 2.0, 1.0], [1.0, 0.0, 3.0]]])
def test_other_losses(loss):
    (node, edge), y, mask = batch()
    made = nt.MarkovLoss(loss, smoothing=1.0, tol=1e-8, reduction="none")
    value, p = made(node, edge, y, mask), made.predict_proba(node, edge, mask)
    assert p.shape[-1] == (2 if isinstance(loss, list) else 3)
    for i, n in enumerate(LENGTHS):
        if n:
            x = node[i, :n].detach().numpy(), one_of("shared", edge, i, n - 1)
            expected = chain(n, 3, loss).loss_value(x, y[i, :n].numpy(), 1.0)
            assert value[i].item() == pytest.approx(expected, abs=1e-5)


@every_device
@every_table
def test_gradcheck(tables, device):
    (node, edge), y, mask = batch(tables, lengths=(4, 2), device=device)
    node = node.detach().nan_to_num(0.0).requires_grad_()
    loss = nt.MarkovLoss(smoothing=0.7, tol=1e-13)
    assert torch.autograd.gradcheck(lambda f, T: loss(f, T, y, mask), (node, edge), eps=1e-5, atol=1e-5)


@pytest.mark.parametrize("graph", EDGES)
@pytest.mark.parametrize("tables", ["shared", "own"])
def test_gradients_of_graphs(graph, tables):
    (node, edge), y, _ = batch(tables, lengths=(5, 5), m=len(EDGES[graph]))
    mask = torch.tensor([[True] * 5, [True, False, True, True, True]])
    loss = nt.MarkovLoss(smoothing=0.7, tol=1e-12)
    assert torch.autograd.gradcheck(lambda f, T: loss(f, T, y, mask, EDGES[graph]), (node, edge), eps=1e-5, atol=1e-5)


@every_device
def test_subgradient_inequality_without_smoothing(device):
    (node, edge), y, mask = batch(device=device)
    loss = nt.MarkovLoss(smoothing=0.0, reduction="sum")
    value = loss(node, edge, y, mask)
    value.backward()
    (other, table), _, _ = batch(device=device, seed=3)
    plane = value + (node.grad * (other - node).nan_to_num()).sum() + (edge.grad * (table - edge)).sum()
    assert loss(other, table, y, mask) >= plane - 1e-6


@every_device
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_types_reductions_and_repetition(dtype, device):
    (node, edge), y, mask = batch(dtype=dtype, device=device)
    exact = [x.detach().double() for x in (node, edge)]
    loss = nt.MarkovLoss(tol=1e-5)
    value = loss(node, edge, y, mask)
    assert value.dtype == dtype
    near = {"abs": 1e-4} if dtype == torch.float32 else {"rel": 0.01}
    assert value.item() == pytest.approx(loss(*exact, y, mask).item(), **near)
    each = nt.MarkovLoss(tol=1e-5, reduction="none")(*exact, y, mask)
    assert loss(*exact, y, mask).item() == pytest.approx(each.sum().item() / sum(LENGTHS))
    first = torch.autograd.grad(value, (node, edge))
    again = torch.autograd.grad(loss(node, edge, y, mask), (node, edge))
    assert all(a.dtype == dtype and torch.equal(a, b) for a, b in zip(first, again, strict=True))
    with torch.autocast(device, dtype=torch.bfloat16):
        assert loss(node, edge, y, mask).dtype == torch.float32


@every_device
@pytest.mark.parametrize("tables", ["shared", "own"])
def test_scores_without_a_value_give_nan_there_alone(tables, device):
    (node, edge), y, mask = batch(tables, lengths=(3, 3, 3, 3), device=device)
    with torch.no_grad():
        node[1, 0, 1] = torch.nan
        node[2, 2] = -torch.inf
    each = nt.MarkovLoss(reduction="none")(node, edge, y, mask)
    assert each.isnan().tolist() == [False, True, True, False]


@every_device
def test_empty_batches(device):
    for shape in ((0, 3, 2), (2, 0, 2)):
        node = torch.zeros(shape, device=device, requires_grad=True)
        edge = torch.zeros(2, 2, device=device, requires_grad=True)
        y = torch.zeros(shape[:2], dtype=torch.long, device=device)
        loss = nt.MarkovLoss(reduction="sum")
        loss(node, edge, y).backward()
        assert edge.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert loss.predict(node, edge).shape == shape[:2]


def test_the_function_is_the_module():
    (node, edge), y, mask = batch()
    for loss in ("zero_one", [[0.0, 2.0, 1.0], [1.0, 0.0, 3.0]]):
        value = nt.functional.markov_loss(node, edge, y, mask, loss=loss, smoothing=0.7, reduction="sum")
        assert torch.equal(value, nt.MarkovLoss(loss, 0.7, reduction="sum")(node, edge, y, mask))


def test_differentiating_twice_says_why_not():
    (node, edge), y, mask = batch(lengths=(3, 3))
    (change,) = torch.autograd.grad(nt.MarkovLoss()(node, edge, y, mask), node, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiated twice"):
        change.sum().backward()


@every_device
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
def test_compiles_without_a_graph_break(device):
    torch._dynamo.reset()
    (node, edge), y, mask = batch(device=device)
    loss = nt.MarkovLoss()
    value = torch.compile(loss, fullgraph=True, backend="aot_eager")(node, edge, y, mask)
    for a, b in zip(
        torch.autograd.grad(value, (node, edge)),
        torch.autograd.grad(loss(node, edge, y, mask), (node, edge)),
        strict=True,
    ):
        assert torch.equal(a, b)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_cuda_graph_replays_it():
    (node, edge), y, mask = batch(device="cuda", dtype=torch.float32)
    loss = nt.MarkovLoss()

    def step():
        return torch.autograd.grad(loss(node, edge, y, mask), (node, edge))

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        held = step()
    with torch.no_grad():
        node.mul_(-2.0)
    graph.replay()
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(held, step(), strict=True))


def test_threads_change_nothing(monkeypatch):
    (node, edge), y, mask = batch(k=5, lengths=(6, 3, 6, 6))
    loss = nt.MarkovLoss()
    one = torch.autograd.grad(loss(node, edge, y, mask), (node, edge))
    monkeypatch.setattr("nashlearn.torch.chains._WORTH_A_THREAD", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    three = torch.autograd.grad(loss(node, edge, y, mask), (node, edge))
    assert all(torch.equal(a, b) for a, b in zip(one, three, strict=True))


def test_a_gap_that_stays_is_told():
    from sklearn.exceptions import ConvergenceWarning

    (node, edge), y, mask = batch(scale=3.0)
    with pytest.warns(ConvergenceWarning, match="gap"):
        nt.MarkovLoss(smoothing=0.05, tol=1e-12, max_iter=2)(node, edge, y, mask)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("graph", [None, *EDGES])
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_a_gap_is_what_the_replies_leave(graph, rounds):
    """``sum_v <p_v, L q_v> - min (L q_v)``, for replies that have not settled: neither less nor more."""
    lengths = LENGTHS if graph is None else (5, 5)
    edges = None if graph is None else EDGES[graph]
    (node, edge), _, mask = batch(lengths=lengths, scale=2.0, m=None if graph is None else len(edges))
    found = nt.MarkovLoss(smoothing=0.3, tol=0.0, max_iter=rounds).solve(node, edge, mask, edges)
    cost = found.q[0] @ (1.0 - torch.eye(3, dtype=torch.float64))
    left = ((found.p * cost).sum(2) - cost.amin(2)).nan_to_num().sum(1)
    assert found.gap.tolist() == pytest.approx(left.tolist(), abs=1e-9)
    if rounds == 1:
        assert left.max() > 0.05
    exact = nt.MarkovLoss(smoothing=0.3, tol=1e-9).solve(node, edge, mask, edges)
    assert (found.value <= exact.value + 1e-6).all() and (found.value + found.gap >= exact.value - 1e-6).all()


NODE, EDGE, Y = torch.zeros(2, 3, 4), torch.zeros(4, 4), torch.zeros(2, 3).long()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nt.MarkovLoss(reduction="all"), "reduction"),
        (lambda: nt.MarkovLoss("hinge"), "loss must be one of"),
        (lambda: nt.MarkovLoss(smoothing=-1), "smoothing"),
        (lambda: nt.MarkovLoss(tol=-1), "tol"),
        (lambda: nt.MarkovLoss(max_iter=0), "max_iter"),
        (lambda: nt.MarkovLoss()(NODE[0], EDGE, Y), "node_scores"),
        (lambda: nt.MarkovLoss()(NODE, EDGE[:3], Y), r"edge_scores must .*\(2, 2, 4, 4\)"),
        (lambda: nt.MarkovLoss()(NODE, EDGE, Y[:, :2]), "target"),
        (lambda: nt.MarkovLoss()(NODE, EDGE, Y.float()), "target"),
        (lambda: nt.MarkovLoss()(NODE, EDGE, Y + 4), r"labels 0\.\.3 .*got 4"),
        (lambda: nt.MarkovLoss()(NODE, EDGE, Y, Y), "mask must be boolean"),
        (lambda: nt.MarkovLoss()(NODE, EDGE, Y, torch.eye(3)[1:] > 0), r"mask\[0\] is not"),
        (lambda: nt.MarkovLoss()(NODE, EDGE, Y, edges=[(0, 3)]), r"edges must join nodes 0\.\.2"),
        (lambda: nt.MarkovLoss(np.eye(3))(NODE, EDGE, Y), "costs for 3 labels"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises((ValueError, IndexError), match=message):
        make()
