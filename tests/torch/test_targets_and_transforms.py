"""Targets as cross-entropy takes them, smoothed or probabilities, and the transforms of torch.func."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from loss_cases import FOUR, draw, every_loss, labels, module, on_each_device  # noqa: E402

import nashlearn  # noqa: E402
import nashlearn.torch as nt  # noqa: E402

both = pytest.mark.parametrize("smoothing", [0.0, 0.3])
WEIGHT = torch.tensor([1.0, 0.5, 2.0, 3.0], dtype=torch.float64)


def distributions(*shape, device="cpu", seed=4):
    return draw(*shape, device=device, seed=seed).softmax(-1 if len(shape) == 1 else 1)


@on_each_device
@every_loss
@both
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_probabilities_are_a_mixture_of_labels(name, smoothing, weight, device):
    """``<y, F - f>``, each class times its weight; the mean is over rows."""
    scores, y = draw(20, 4, device=device).requires_grad_(), distributions(20, 4, device=device)
    weight = None if weight is None else weight.to(device)
    loss = module(name, smoothing, reduction="none").to(device)
    each = torch.stack([loss(scores, torch.full((20,), j, device=device)) for j in range(4)], 1)
    right = (each * y * (1.0 if weight is None else weight)).sum(1)
    slope = torch.autograd.grad(right.sum(), scores)[0]
    for reduction, wanted, scale in (("none", right, 1), ("sum", right.sum(), 1), ("mean", right.mean(), 20)):
        loss = module(name, smoothing, reduction=reduction, weight=weight).to(device)
        value = loss(scores, y)
        assert (value - wanted).abs().max() <= 1e-9
        assert (scale * torch.autograd.grad(value.sum(), scores)[0] - slope).abs().max() <= 1e-9


@on_each_device
@every_loss
@both
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_label_smoothing_is_that_of_cross_entropy(name, smoothing, weight, device):
    """Targets mixed with the uniform distribution, for labels and for probabilities; means as cross-entropy's."""
    scores, y = draw(20, 4, device=device).requires_grad_(), labels(4, 20, device=device)
    y[::6] = -100
    weight = None if weight is None else weight.to(device)
    counted, share = y != -100, 1.0 if weight is None else weight
    mixed = 0.9 * torch.nn.functional.one_hot(y.clamp_min(0), 4).double() + 0.025
    plain = module(name, smoothing, reduction="none").to(device)
    each = torch.stack([plain(scores, torch.full((20,), j, device=device)) for j in range(4)], 1)
    right = (each * mixed * share).sum(1) * counted
    mass = (counted if weight is None else weight[y.clamp_min(0)] * counted).sum()
    for reduction, wanted in (("none", right), ("sum", right.sum()), ("mean", right.sum() / mass)):
        loss = module(name, smoothing, reduction=reduction, weight=weight, label_smoothing=0.1).to(device)
        value = loss(scores, y)
        assert (value - wanted).abs().max() <= 1e-9
        slope = torch.autograd.grad(wanted.sum(), scores, retain_graph=True)[0]
        assert (torch.autograd.grad(value.sum(), scores)[0] - slope).abs().max() <= 1e-9
    loss = module(name, smoothing, reduction="none", weight=weight, label_smoothing=0.1).to(device)
    one = torch.nn.functional.one_hot(y.clamp_min(0), 4).double()
    assert ((loss(scores, one) - loss(scores, y.clamp_min(0))).abs() <= 1e-9).all()


@on_each_device
@pytest.mark.parametrize("shape", [(), (5,), (5, 3, 2)])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
def test_much_smoothing_is_cross_entropy(shape, label_smoothing, device):
    """Shapes, weights and reductions against PyTorch's own: the loss over ``mu`` tends to it."""
    full = (4,) if not shape else (shape[0], 4, *shape[1:])
    scores, weight = draw(*full, device=device), WEIGHT.to(device)
    for target in (labels(4, *shape, device=device), distributions(*full, device=device)):
        for reduction in ("none", "sum", "mean"):
            settings = {"weight": weight, "reduction": reduction, "label_smoothing": label_smoothing}
            ours = nt.NashLoss(smoothing=1e5, **settings)(1e5 * scores, target) / 1e5
            right = torch.nn.functional.cross_entropy(scores, target, **settings)
            assert ours.shape == right.shape
            assert (ours - right).abs().max() <= 1e-3


@on_each_device
@both
def test_targets_have_gradients_too(smoothing, device):
    scores, y = draw(6, 4, device=device), distributions(6, 4, device=device).requires_grad_()
    loss = nt.NashLoss(smoothing=smoothing, label_smoothing=0.1)
    assert torch.autograd.gradcheck(lambda t: loss(scores, t), y)


@on_each_device
@both
def test_a_class_that_is_ruled_out_and_not_seen_costs_nothing(smoothing, device):
    scores, y = draw(6, 4, device=device), distributions(6, 4, device=device)
    scores[:, 2], y[:, 2] = -torch.inf, 0.0
    scores.requires_grad_()
    value = nt.NashLoss(smoothing=smoothing)(scores, y)
    value.backward()
    assert value.isfinite()
    assert scores.grad.isfinite().all()
    assert not scores.grad[:, 2].any()


@on_each_device
@every_loss
@both
def test_vmap_of_grad_gives_gradients_of_examples(name, smoothing, device):
    scores, y = draw(12, 4, device=device), labels(4, 12, device=device)
    loss = module(name, smoothing).to(device)
    by_example = torch.func.vmap(torch.func.grad(lambda f, t: loss(f, t)))(scores, y)
    x = scores.clone().requires_grad_()
    right = torch.autograd.grad(module(name, smoothing, reduction="sum").to(device)(x, y), x)[0]
    assert (by_example - right).abs().max() <= 1e-12
    assert (torch.func.grad(loss)(scores, y) - right / 12).abs().max() <= 1e-12


@on_each_device
@both
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_vmap_over_batches_models_and_targets(smoothing, reduction, device):
    """With weights, ignored labels, label smoothing and probabilities, and what is shared between the batches."""
    scores, y = draw(3, 7, 4, device=device), labels(4, 3, 7, device=device)
    y[:, 2] = -100
    for settings in ({}, {"weight": WEIGHT.to(device)}, {"weight": WEIGHT.to(device), "label_smoothing": 0.1}):
        loss = nt.NashLoss(smoothing=smoothing, reduction=reduction, **settings)
        mapped = torch.func.vmap(loss)(scores, y)
        assert (mapped - torch.stack([loss(*pair) for pair in zip(scores, y, strict=True)])).abs().max() <= 1e-12
        shared = torch.func.vmap(loss, in_dims=(0, None))(scores, y[0])
        assert (shared - torch.stack([loss(f, y[0]) for f in scores])).abs().max() <= 1e-12
        moved = torch.func.vmap(loss, in_dims=(2, 1))(scores.movedim(0, 2), y.T)
        assert (moved - mapped).abs().max() <= 1e-12
        soft = distributions(7, 4, device=device)
        mapped = torch.func.vmap(loss, in_dims=(0, None))(scores, soft)
        assert (mapped - torch.stack([loss(f, soft) for f in scores])).abs().max() <= 1e-12


@on_each_device
@both
def test_hessians_are_refused(smoothing, device):
    scores, y = draw(5, 4, device=device), labels(4, 5, device=device)
    loss = nt.NashLoss(smoothing=smoothing)
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.func.jacrev(torch.func.grad(loss))(scores, y)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
@on_each_device
@both
def test_smoothed_targets_compile_without_a_graph_break(smoothing, device):
    torch._dynamo.reset()
    loss = nt.NashLoss(smoothing=smoothing, label_smoothing=0.1, weight=WEIGHT.to(device))
    scores = draw(16, 4, device=device).requires_grad_()
    compiled = torch.compile(lambda x, t: loss(2 * x, t), fullgraph=True, backend="aot_eager")
    for target in (labels(4, 16, device=device), distributions(16, 4, device=device)):
        value = compiled(scores, target)
        right = loss(2 * scores, target)
        assert (value - right).abs() <= 1e-12
        slopes = (torch.autograd.grad(x, scores)[0] for x in (value, right))
        assert (next(slopes) - next(slopes)).abs().max() <= 1e-12


@on_each_device
def test_autocast_gives_float32(device):
    scores = draw(5, 4, dtype=torch.bfloat16, device=device).requires_grad_()
    for target in (labels(4, 5, device=device), distributions(5, 4, device=device).bfloat16()):
        loss = nt.NashLoss(smoothing=0.3, label_smoothing=0.1)
        with torch.autocast(device, dtype=torch.bfloat16):
            assert loss(scores, target).dtype == torch.float32
        assert loss(scores, target).dtype == torch.bfloat16


def test_probabilities_of_the_default_are_proper():
    """Scores fitted to repeated labels give their frequencies back."""
    scores = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    often = torch.tensor([[0.6, 0.3, 0.1]], dtype=torch.float64)
    loss = nt.NashLoss()
    optimizer = torch.optim.LBFGS([scores], max_iter=200, tolerance_grad=1e-10, line_search_fn="strong_wolfe")

    def value():
        optimizer.zero_grad()
        found = loss(scores, often)
        found.backward()
        return found

    optimizer.step(value)
    assert (loss.predict_proba(scores) - often).abs().max() <= 1e-4
    assert np.abs(FOUR["zero_one"][1].costs).max() == 1  # the unit of the default


def test_no_kernel_has_an_argument_that_triton_names_so_itself():
    """What launches a kernel is generated with these names: an argument of that name is lost."""
    taken = {"params", "options", "specialization", "backend", "specialize_impl", "JITCallable"}
    folder = Path(nashlearn.__file__).parent / "torch"
    found = 0
    for path in folder.glob("triton_*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                found += 1
                assert not taken & {argument.arg for argument in node.args.args}, (path.name, node.name)
    assert found > 50
