"""The PyTorch losses against the NumPy games, on the CPU and, where there is one, on a CUDA device."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import nashlearn.torch as nt  # noqa: E402
from nashlearn import games  # noqa: E402

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
CUDA = pytest.param("cuda", marks=needs_cuda)
on_each_device = pytest.mark.parametrize("device", ["cpu", CUDA])

COSTS = np.array([[0.0, 2.0, 1.0, 3.0], [1.0, 0.0, 4.0, 1.0], [5.0, 1.0, 0.0, 2.0], [2.0, 2.0, 2.0, 0.0], [1.0] * 4])
POSITIONS = [-1.0, 0.5, 2.0, 6.0]
# For four classes: what the module is given, and the game it stands for.
FOUR = {
    "zero_one": (("zero_one", {}), games.zero_one(4)),
    "absolute": (("absolute", {}), games.absolute(4)),
    "absolute, values": (("absolute", {"values": POSITIONS}), games.absolute(4, POSITIONS)),
    "squared": (("squared", {}), games.squared(4)),
    "squared, values": (("squared", {"values": POSITIONS}), games.squared(4, POSITIONS)),
    "abstain": (("abstain", {"abstain_cost": 0.3}), games.abstain(4, 0.3)),
    "abstain, dear": (("abstain", {"abstain_cost": 0.7}), games.abstain(4, 0.7)),
    "abstain, free": (("abstain", {"abstain_cost": 0.0}), games.abstain(4, 0.0)),
    "cost": ((COSTS, {}), games.cost(COSTS)),
    "weighted game": ((games.zero_one(4, [1.0, 2.0, 0.5, 3.0]), {}), games.zero_one(4, [1.0, 2.0, 0.5, 3.0])),
    "ordinal game": ((games.squared(4, POSITIONS), {}), games.squared(4, POSITIONS)),
    "abstention game": ((games.abstain(4, 0.4), {}), games.abstain(4, 0.4)),
    "other game": ((games.abstain(4, [0.1, 0.2, 0.3, 0.4]), {}), games.abstain(4, [0.1, 0.2, 0.3, 0.4])),
}
every_loss = pytest.mark.parametrize("name", FOUR)
NAMED = {
    "zero_one": games.zero_one,
    "absolute": games.absolute,
    "squared": games.squared,
    "abstain": games.abstain,
}
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def module(name: str, **settings):
    loss, own = FOUR[name][0]
    return nt.NashLoss(loss, **own, **settings)


def draw(*shape, dtype=torch.float64, device="cpu", spread=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (spread * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype).to(device)


def labels(k, *shape, device="cpu", seed=1):
    return torch.randint(0, k, shape, generator=torch.Generator().manual_seed(seed)).to(device)


def expected(game, scores, y):
    """Losses and strategies of rows, in float64, by the NumPy game."""
    rows = scores.detach().double().cpu().numpy()
    return game.loss_value(rows, y.cpu().numpy()), game.solve(rows).q


def assert_near(tensor, array, dtype):
    array = np.asarray(array)
    error = np.abs(tensor.detach().double().cpu().numpy() - array).max(initial=0.0)
    assert error <= TOLERANCE[dtype] * max(1.0, np.abs(array).max(initial=0.0))


@on_each_device
@every_loss
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_values_gradients_and_predictions_are_the_games(name, dtype, device):
    game = FOUR[name][1]
    scores = draw(257, 4, dtype=dtype, device=device).requires_grad_()
    y = labels(4, 257, device=device)
    loss = module(name, reduction="none").to(device)
    value = loss(scores, y)
    assert value.dtype == dtype
    right, q = expected(game, scores, y)
    assert_near(value, right, dtype)
    (3 * value.sum()).backward()
    assert scores.grad.dtype == dtype
    # Half precision makes ties, where a game has many gradients: there the inequality below is the test.
    if dtype in (torch.float64, torch.float32):
        assert_near(scores.grad, 3 * (q - np.eye(4)[y.cpu()]), dtype)
    p = loss.predict_proba(scores)
    assert_near(p.sum(1), np.ones(257), dtype)
    upper = game.upper(scores.detach().double().cpu().numpy(), p.double().cpu().numpy())
    assert_near(torch.as_tensor(upper), right + scores.detach().double().cpu().numpy()[np.arange(257), y.cpu()], dtype)
    assert torch.equal(loss.predict(scores), p.argmax(1) if name != "zero_one" else scores.argmax(1))


@on_each_device
@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("k", [1, 2, 7, 33, 100, 1000])
@pytest.mark.parametrize("spread", [0.01, 1.0, 5.0])
def test_every_class_count(name, k, spread, device):
    scores = draw(37, k, device=device, spread=spread).requires_grad_()
    y = labels(k, 37, device=device)
    value = nt.functional.nash_loss(scores, y, name, reduction="sum")
    value.backward()
    right, q = expected(NAMED[name](k), scores, y)
    assert_near(value, right.sum(), torch.float64)
    assert_near(scores.grad, q - np.eye(k)[y.cpu()], torch.float64)


@needs_cuda
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["zero_one", "abstain"])
@pytest.mark.parametrize("k", [8192, 9001, 40000])
@pytest.mark.parametrize("spread", [0.01, 1.0, 5.0])
def test_long_rows_on_cuda(name, k, spread, dtype):
    scores = draw(6, k, dtype=dtype, device="cuda", spread=spread).requires_grad_()
    y = labels(k, 6, device="cuda")
    value = nt.functional.nash_loss(scores, y, name, reduction="none")
    value.sum().backward()
    on_host = scores.detach().double().cpu().requires_grad_()
    right = nt.functional.nash_loss(on_host, y.cpu(), "zero_one", reduction="none") if name == "zero_one" else None
    if right is None:
        top = on_host.detach().topk(2, 1).values
        right = top[:, 0] + 0.5 * (1 - top[:, 0] + top[:, 1]).clamp_min(0) - on_host.gather(1, y.cpu()[:, None])[:, 0]
    assert_near(value, right.detach().numpy(), dtype)
    assert_near(scores.grad.double().sum(1), np.zeros(6), dtype)


@on_each_device
@every_loss
@pytest.mark.parametrize("shape", [(), (5,), (5, 3), (5, 3, 2)])
def test_shapes_are_those_of_cross_entropy(name, shape, device):
    full = (4,) if not shape else (shape[0], 4, *shape[1:])
    scores = draw(*full, device=device).requires_grad_()
    y = labels(4, *shape, device=device)
    loss = module(name, reduction="none").to(device)
    value = loss(scores, y)
    assert value.shape == torch.nn.functional.cross_entropy(scores, y, reduction="none").shape
    rows = scores.detach().movedim(-1 if not shape else 1, -1).reshape(-1, 4)
    right, q = expected(FOUR[name][1], rows, y.reshape(-1))
    assert_near(value.reshape(-1), right, torch.float64)
    value.sum().backward()
    change = torch.as_tensor(q - np.eye(4)[y.reshape(-1).cpu()])
    assert_near(scores.grad.movedim(-1 if not shape else 1, -1).reshape(-1, 4), change, torch.float64)
    assert loss.predict(scores).shape == y.shape
    options = FOUR[name][1].n_options
    assert loss.predict_proba(scores).shape == ((options,) if not shape else (shape[0], options, *shape[1:]))


@on_each_device
@every_loss
def test_gradcheck_off_ties(name, device):
    scores = draw(6, 4, device=device, spread=0.7, seed=3).requires_grad_()
    y = labels(4, 6, device=device)
    assert torch.autograd.gradcheck(lambda s: module(name).to(device)(s, y), scores, eps=1e-6, atol=1e-6)


@on_each_device
@every_loss
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_subgradient_inequality_at_ties(name, dtype, device):
    tied = (draw(200, 4).mul(2).round() / 2).to(dtype).to(device).requires_grad_()
    elsewhere = (draw(200, 4, seed=9).mul(4).round() / 4).to(dtype).to(device)
    y = labels(4, 200, device=device)
    loss = module(name, reduction="none").to(device)
    value = loss(tied, y)
    value.sum().backward()
    plane = value.double() + (tied.grad.double() * (elsewhere - tied).double()).sum(1)
    assert (loss(elsewhere.double(), y) - plane).min() >= -TOLERANCE[dtype] * 20


@on_each_device
@every_loss
def test_weights_ignored_targets_and_reductions(name, device):
    scores = draw(64, 4, device=device)
    y = labels(4, 64, device=device)
    y[::5] = -7
    weight = torch.tensor([1.0, 0.5, 2.0, 3.0], dtype=torch.float64, device=device)
    each = draw(64, device=device, seed=5).abs()
    right, q = expected(FOUR[name][1], scores, y.clamp_min(0))
    counted = (y != -7).cpu().numpy()
    share = counted * weight.cpu().numpy()[y.clamp_min(0).cpu()] * each.cpu().numpy()
    for reduction, wanted in (
        ("none", right * share),
        ("sum", (right * share).sum()),
        ("mean", (right * share).sum() / share.sum()),
    ):
        loss = module(name, reduction=reduction, ignore_index=-7, weight=weight).to(device)
        x = scores.clone().requires_grad_()
        value = loss(x, y, sample_weight=each)
        assert_near(value, wanted, torch.float64)
        value.sum().backward()
        scale = share / share.sum() if reduction == "mean" else share
        assert_near(x.grad, scale[:, None] * (q - np.eye(4)[y.clamp_min(0).cpu()]), torch.float64)
        assert not x.grad[y == -7].any()


@on_each_device
@pytest.mark.parametrize("name", NAMED)
def test_nothing_to_learn_from(name, device):
    empty = torch.zeros(0, 4, device=device, requires_grad=True)
    none = torch.zeros(0, dtype=torch.long, device=device)
    assert nt.functional.nash_loss(empty, none, name, reduction="sum").item() == 0
    assert nt.functional.nash_loss(empty, none, name).isnan()
    assert nt.functional.nash_loss(empty, none, name, reduction="none").shape == (0,)
    nt.functional.nash_loss(empty, none, name, reduction="sum").backward()
    assert empty.grad.shape == (0, 4)
    ignored = torch.full((3,), -100, device=device)
    scores = torch.zeros(3, 4, device=device, requires_grad=True)
    assert nt.functional.nash_loss(scores, ignored, name).isnan()
    nt.functional.nash_loss(scores, ignored, name, reduction="sum").backward()
    assert not scores.grad.any()


@on_each_device
@every_loss
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_score_spoils_its_row_alone(name, bad, device):
    scores = draw(9, 4, device=device)
    scores[3, 1] = bad
    scores[5] = -float("inf")
    scores.requires_grad_()
    value = module(name, reduction="none").to(device)(scores, labels(4, 9, device=device))
    value.sum().backward()
    spoilt = torch.zeros(9, dtype=torch.bool, device=device)
    spoilt[3] = spoilt[5] = True
    assert torch.equal(value.isnan(), spoilt)
    assert torch.equal(scores.grad.isnan().any(1), spoilt)


@on_each_device
@every_loss
def test_minus_infinity_rules_a_class_out(name, device):
    scores = draw(50, 4, device=device)
    scores[::2, 2] = -float("inf")
    y = labels(2, 50, device=device)
    right, _ = expected(FOUR[name][1], scores, y)
    scores.requires_grad_()
    value = module(name, reduction="none").to(device)(scores, y)
    assert_near(value, right, torch.float64)
    value.sum().backward()
    assert not scores.grad[::2, 2].any()


@on_each_device
@every_loss
def test_backward_twice_is_the_same_and_deterministic(name, device):
    scores = draw(100, 4, device=device).requires_grad_()
    value = module(name).to(device)(scores, labels(4, 100, device=device))
    first = torch.autograd.grad(value, scores, retain_graph=True)[0]
    second = torch.autograd.grad(value, scores)[0]
    again = module(name).to(device)(scores, labels(4, 100, device=device))
    assert torch.equal(first, second)
    assert torch.equal(first, torch.autograd.grad(again, scores)[0])
    assert torch.equal(value, again)


@on_each_device
def test_second_derivatives_are_refused(device):
    scores = draw(5, 4, device=device).requires_grad_()
    value = nt.NashLoss().to(device)(scores, labels(4, 5, device=device))
    gradient = torch.autograd.grad(value, scores, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(gradient.sum(), scores)


@on_each_device
def test_autocast_gives_float32(device):
    scores = draw(5, 4, dtype=torch.bfloat16, device=device).requires_grad_()
    y = labels(4, 5, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        value = nt.NashLoss()(scores, y)
        assert value.dtype == torch.nn.functional.cross_entropy(scores, y).dtype == torch.float32
    value.backward()
    assert scores.grad.dtype == torch.bfloat16
    assert nt.NashLoss()(scores, y).dtype == torch.bfloat16


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
@on_each_device
@every_loss
def test_compiles_without_a_graph_break(name, device):
    torch._dynamo.reset()
    loss = module(name).to(device)
    scores = draw(16, 4, device=device).requires_grad_()
    y = labels(4, 16, device=device)
    compiled = torch.compile(lambda x, y: loss(2 * x, y), fullgraph=True, backend="aot_eager")
    value = compiled(scores, y)
    assert_near(value, loss(2 * scores, y).item(), torch.float64)
    gradient = torch.autograd.grad(value, scores)[0]
    assert torch.equal(gradient, torch.autograd.grad(loss(2 * scores, y), scores)[0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
@on_each_device
def test_compiles_for_every_batch_size(device):
    torch._dynamo.reset()
    loss = nt.NashLoss()
    compiled = torch.compile(loss, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (16, 5, 33):
        scores, y = draw(n, 4, device=device, seed=n).requires_grad_(), labels(4, n, device=device)
        value = compiled(scores, y)
        assert torch.equal(value, loss(scores, y))
        assert torch.equal(torch.autograd.grad(value, scores)[0], torch.autograd.grad(loss(scores, y), scores)[0])


@needs_cuda
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "k"), [("zero_one", 10), ("zero_one", 9001), ("squared", 10)])
def test_a_cuda_graph_replays_it(name, k, reduction):
    loss = nt.NashLoss(name, reduction=reduction)
    scores, y = draw(64, k, device="cuda").requires_grad_(), labels(k, 64, device="cuda")

    def step():
        value = loss(scores, y)
        return value.detach(), torch.autograd.grad(value.sum(), scores)[0]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value, change = step()
    with torch.no_grad():
        scores.copy_(draw(64, k, device="cuda", seed=8))
    graph.replay()
    right, slope = step()
    assert torch.equal(value, right)
    assert torch.equal(change, slope)


@needs_cuda
@pytest.mark.parametrize(("name", "k"), [("zero_one", 12), ("zero_one", 9004), ("absolute", 12)])
def test_rows_that_begin_anywhere_in_memory(name, k):
    loss = nt.NashLoss(name, reduction="none")
    for start in (0, 1, 2, 0):
        scores = draw(40 * k + start, device="cuda")[start:].reshape(40, k).requires_grad_()
        y = labels(k, 40 + start, device="cuda")[start:]
        value = loss(scores, y)
        copied = scores.detach().clone().requires_grad_()
        again = loss(copied, y.clone())
        assert torch.equal(value, again)
        change = torch.autograd.grad(value.sum(), scores)[0]
        assert torch.equal(change, torch.autograd.grad(again.sum(), copied)[0])


@needs_cuda
def test_launches_are_told_to_profilers():
    knobs = pytest.importorskip("triton.knobs")
    scores, y = draw(8, 10, device="cuda").requires_grad_(), labels(10, 8, device="cuda")
    torch.autograd.grad(nt.NashLoss()(scores, y), scores)
    heard = []
    note = lambda about: heard.append(about.get()["name"])  # noqa: E731
    knobs.runtime.launch_enter_hook.add(note)
    try:
        torch.autograd.grad(nt.NashLoss()(scores, y), scores)
    finally:
        knobs.runtime.launch_enter_hook.remove(note)
    assert heard == ["_tile_forward", "_total", "_tile_backward"]


def test_operators_pass_pytorchs_own_checks():
    scores, y = draw(6, 4), labels(4, 6)
    numbers = torch.empty(0, dtype=torch.float64)
    arguments = (scores, y, None, numbers, "zero_one", 0.0, -100, "mean", False)
    checks = ("test_schema", "test_faketensor")
    found = torch.library.opcheck(torch.ops.nashlearn.loss.default, arguments, test_utils=checks)
    assert found == dict.fromkeys(checks, "SUCCESS")
    arguments = (scores, numbers, "abstain", 0.3)
    found = torch.library.opcheck(torch.ops.nashlearn.strategy.default, arguments, test_utils=checks)
    assert found == dict.fromkeys(checks, "SUCCESS")


def test_state_and_devices_follow_the_module():
    loss = nt.NashLoss(COSTS, weight=torch.ones(4))
    assert set(loss.state_dict()) == {"weight"}
    assert "ignore_index=-100" in repr(loss)
    assert "zero_one" in repr(nt.NashLoss())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nt.NashLoss("hinge"), "zero_one, absolute, squared, abstain"),
        (lambda: nt.NashLoss("abstain", abstain_cost=-1.0), "abstain_cost"),
        (lambda: nt.NashLoss("zero_one", values=[1, 2]), "values"),
        (lambda: nt.NashLoss("absolute", values=[2, 1]), "values"),
        (lambda: nt.NashLoss([[1.0, -1.0]]), "L must not be negative"),
        (lambda: nt.NashLoss(reduction="all")(torch.zeros(1, 2), torch.zeros(1).long()), "reduction"),
        (lambda: nt.NashLoss(COSTS)(torch.zeros(1, 3), torch.zeros(1).long()), "4 classes"),
        (lambda: nt.NashLoss()(torch.zeros(1, 2).long(), torch.zeros(1).long()), "floating point"),
        (lambda: nt.NashLoss()(torch.zeros(1, 2), torch.zeros(1)), "integer labels"),
        (lambda: nt.NashLoss()(torch.zeros(1, 2), torch.zeros(2).long()), "target must have shape"),
        (lambda: nt.NashLoss(weight=torch.ones(3))(torch.zeros(1, 2), torch.zeros(1).long()), "weight"),
        (lambda: nt.NashLoss()(torch.zeros(1, 2), torch.zeros(1).long(), torch.ones(2)), "sample_weight"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_labels_out_of_range_are_named_on_the_host():
    with pytest.raises(IndexError, match=r"labels 0\.\.2 or ignore_index=-100; got 3"):
        nt.NashLoss()(torch.zeros(2, 3), torch.tensor([0, 3]))


def test_without_torch_the_import_says_how_to_get_it():
    code = "import sys; sys.modules['torch'] = None\nimport nashlearn\nimport nashlearn.torch"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert "ImportError: nashlearn.torch needs PyTorch: pip install 'nashlearn[torch]'" in answer.stderr


@on_each_device
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradients_at_ties_of_weighted_labels_have_no_mass(dtype, device):
    """``q`` and ``y`` are distributions, so their difference sums to 0, whichever labels rounding lets in."""
    scores = torch.tensor([[0.0, -1.0]], dtype=dtype, device=device)
    for weight in range(1, 200):
        x = scores.clone().requires_grad_()
        nt.NashLoss(games.zero_one(2, [float(weight), 1.0]))(x, torch.tensor([0], device=device)).backward()
        assert abs(x.grad.sum().item()) <= 4 * torch.finfo(dtype).eps
        assert x.grad.abs().max().item() <= 1.0


@on_each_device
@pytest.mark.parametrize("k", [3, 100, 9000])
def test_gradients_at_ties_have_no_mass(k, device):
    """Scores on a grid: many labels lie at the threshold, up to rounding, of short rows and of long ones."""
    rng = np.random.default_rng(k)
    scores = torch.tensor(rng.integers(-30, 1, size=(64, k)) / rng.integers(1, 30, size=(64, 1)), device=device)
    for loss in ("zero_one", games.zero_one(k, rng.integers(1, 50, size=k).astype(float))):
        x = scores.clone().requires_grad_()
        nt.NashLoss(loss, reduction="sum")(x, torch.zeros(64, dtype=torch.int64, device=device)).backward()
        assert x.grad.sum(1).abs().max().item() <= 1e-12
