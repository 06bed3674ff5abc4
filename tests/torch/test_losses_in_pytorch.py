"""What PyTorch asks of a loss: compilation, autocast, graphs, checks, state, and errors that name what is wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from loss_cases import COSTS, assert_near, draw, every_loss, labels, module, needs_cuda, on_each_device  # noqa: E402

import nashlearn.torch as nt  # noqa: E402


@on_each_device
@every_loss
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_backward_twice_is_the_same_and_deterministic(name, smoothing, device):
    scores = draw(100, 4, device=device).requires_grad_()
    value = module(name, smoothing).to(device)(scores, labels(4, 100, device=device))
    first = torch.autograd.grad(value, scores, retain_graph=True)[0]
    second = torch.autograd.grad(value, scores)[0]
    again = module(name, smoothing).to(device)(scores, labels(4, 100, device=device))
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
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_compiles_without_a_graph_break(name, smoothing, device):
    torch._dynamo.reset()
    loss = module(name, smoothing).to(device)
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
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize(("name", "k"), [("zero_one", 10), ("zero_one", 9001), ("squared", 10)])
def test_a_cuda_graph_replays_it(name, k, reduction, smoothing):
    loss = nt.NashLoss(name, reduction=reduction, smoothing=smoothing)
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
    loss = nt.NashLoss(name, reduction="none", smoothing=0.0)
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
    torch.autograd.grad(nt.NashLoss(smoothing=0.0)(scores, y), scores)
    heard = []
    note = lambda about: heard.append(about.get()["name"])  # noqa: E731
    knobs.runtime.launch_enter_hook.add(note)
    try:
        torch.autograd.grad(nt.NashLoss(smoothing=0.0)(scores, y), scores)
    finally:
        knobs.runtime.launch_enter_hook.remove(note)
    assert heard == ["_tile_forward", "_total", "_tile_backward"]


def test_operators_pass_pytorchs_own_checks():
    scores, y = draw(6, 4), labels(4, 6)
    numbers = torch.empty(0, dtype=torch.float64)
    arguments = (scores, y, None, numbers, "zero_one", 0.0, 0.0, -100, "mean", False)
    checks = ("test_schema", "test_faketensor")
    found = torch.library.opcheck(torch.ops.nashlearn.loss.default, arguments, test_utils=checks)
    assert found == dict.fromkeys(checks, "SUCCESS")
    arguments = (scores, numbers, "abstain", 0.3, 0.5)
    for operator in (torch.ops.nashlearn.strategy, torch.ops.nashlearn.probabilities):
        found = torch.library.opcheck(operator.default, arguments, test_utils=checks)
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
        (lambda: nt.NashLoss([[1.0, -1.0]]), "loss must not be negative"),
        (lambda: nt.NashLoss(reduction="all")(torch.zeros(1, 2), torch.zeros(1).long()), "reduction"),
        (lambda: nt.NashLoss(COSTS)(torch.zeros(1, 3), torch.zeros(1).long()), "4 classes"),
        (lambda: nt.NashLoss()(torch.zeros(1, 2).long(), torch.zeros(1).long()), "floating point"),
        (lambda: nt.NashLoss()(torch.zeros(1, 2), torch.zeros(1)), "that of scores, where it holds probabilities"),
        (lambda: nt.NashLoss()(torch.zeros(1, 2), torch.zeros(1, dtype=torch.bool)), "integer labels"),
        (lambda: nt.NashLoss(smoothing=-1.0)(torch.zeros(1, 2), torch.zeros(1).long()), "smoothing"),
        (lambda: nt.NashLoss(smoothing=-1.0).predict_proba(torch.zeros(1, 2)), "smoothing"),
        (lambda: nt.NashLoss(label_smoothing=1.5)(torch.zeros(1, 2), torch.zeros(1).long()), "label_smoothing"),
        (lambda: nt.NashLoss(weight=torch.ones(3))(torch.zeros(1, 2), torch.ones(1, 2) / 2), "weight"),
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
    assert "ImportError: nashlearn.torch needs PyTorch: pip install torch, or pip install '.[torch]'" in answer.stderr
