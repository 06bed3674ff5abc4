"""The linear heads against the losses on full scores, on the CPU and, where there is one, on a CUDA device."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from head_cases import TOLERANCE, assert_near, both_losses, draw, on_each_device, on_scores, reference  # noqa: E402

import nashlearn.torch as nt  # noqa: E402
from nashlearn.torch import linear_exact, linear_host, linear_products  # noqa: E402


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(linear_products, "_ROWS", 8)
    monkeypatch.setattr(linear_products, "_SMALLEST", 1)


@pytest.fixture(params=["lists", "products"])
def way(request, monkeypatch):
    """Both ways through the exact backward pass, whatever the size of the supports."""
    share = {"lists": 2.0, "products": 0.0}[request.param]
    monkeypatch.setattr(linear_exact, "_WORTH_LISTING", {"cpu": share, "cuda": share})
    return request.param


@on_each_device
@both_losses
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_gradcheck(smoothing, reduction, device, small_chunks, way):
    h, weight, bias, target = draw(9, 3, 16, 0.8, device=device)
    assert torch.autograd.gradcheck(
        lambda h, w, b: nt.functional.linear_nash_loss(h, w, target, b, smoothing=smoothing, reduction=reduction),
        (h, weight, bias),
        eps=1e-6,
        atol=1e-6,
    )


@on_each_device
@pytest.mark.parametrize("smoothing", [0.0, 0.03, 0.3, 3.0])
@pytest.mark.parametrize("spread", [1e-6, 0.01, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("k", [1, 2, 100, 3000])
def test_equals_the_loss_on_full_scores(smoothing, spread, k, device, small_chunks, way):
    h, weight, bias, target = draw(50, 6, k, spread, device=device)
    each = torch.rand(k, dtype=torch.float64, generator=torch.Generator().manual_seed(4)).to(device)
    for reduction in ("mean", "sum", "none"):
        grad = torch.linspace(0.5, 2, 50, dtype=torch.float64, device=device) if reduction == "none" else None
        grad = grad if reduction == "none" else torch.tensor(3.0, dtype=torch.float64, device=device)
        settings = {"smoothing": smoothing, "reduction": reduction}
        value = nt.functional.linear_nash_loss(h, weight, target, bias, class_weight=each, **settings)
        right, gradients = reference((h, weight, bias), target, weight=each, grad=grad, **settings)
        assert_near(value, right, torch.float64)
        for ours, theirs in zip(torch.autograd.grad(value, (h, weight, bias), grad), gradients, strict=True):
            assert_near(ours, theirs, torch.float64, 10)


@on_each_device
@both_losses
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("with_bias", [True, False])
def test_every_type(smoothing, dtype, with_bias, device, small_chunks, way):
    h, weight, bias, target = draw(64, 8, 500, 1.0, dtype, device)
    with torch.no_grad():  # one feature at a time: scores are the same numbers in whatever order sums are taken
        h.copy_(torch.eye(8)[torch.arange(64) % 8])
    leaves = (h, weight, bias if with_bias else None)
    value = nt.functional.linear_nash_loss(h, weight, target, leaves[2], smoothing=smoothing)
    assert value.dtype == dtype
    right, change = on_scores(leaves, target, smoothing)
    assert_near(value, right, dtype)
    given = [x for x in leaves if x is not None]
    scale = torch.tensor(2.0**12, dtype=dtype, device=device)  # as a GradScaler's
    wanted = (change @ weight.double(), change.t() @ h.double(), change.sum(0))
    for ours, theirs in zip(torch.autograd.grad(value, given, scale), wanted, strict=False):
        assert ours.dtype == dtype
        assert_near(ours, theirs * 2.0**12, dtype)


@on_each_device
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_ties_give_a_subgradient(dtype, device, way):
    h, weight, _, target = draw(40, 4, 64, dtype=dtype, device=device)
    with torch.no_grad():
        weight.copy_(weight.round())
        h.copy_(h.round())
    other = (draw(40, 4, 64, seed=3)[0].mul(2).round() / 2).to(device)
    value = nt.functional.linear_nash_loss(h, weight, target, reduction="none", smoothing=0.0)
    dh = torch.autograd.grad(value.sum(), h)[0].double()
    elsewhere = nt.functional.linear_nash_loss(other, weight.double(), target, reduction="none", smoothing=0.0)
    plane = value.double() + (dh * (other - h.double())).sum(1)
    assert (elsewhere - plane).min() >= -20 * TOLERANCE[dtype]


@on_each_device
def test_a_class_that_every_row_plays(device, way):
    h, weight, bias, target = draw(2000, 4, 300, 0.3, device=device)
    with torch.no_grad():
        bias[5] += 0.9
    target[:1500] = 5
    value = nt.functional.linear_nash_loss(h, weight, target, bias, smoothing=0.0)
    right, gradients = reference((h, weight, bias), target, 0.0)
    assert_near(value, right, torch.float64)
    for ours, theirs in zip(torch.autograd.grad(value, (h, weight, bias)), gradients, strict=True):
        assert_near(ours, theirs, torch.float64, 10)


@on_each_device
@both_losses
def test_nothing_to_learn_from(smoothing, device):
    settings = {"smoothing": smoothing}
    h, weight, bias, _ = draw(3, 4, 10, device=device)
    ignored = torch.full((3,), -100, device=device)
    assert nt.functional.linear_nash_loss(h, weight, ignored, bias, **settings).isnan()
    value = nt.functional.linear_nash_loss(h, weight, ignored, bias, reduction="sum", **settings)
    assert not any(gradient.any() for gradient in torch.autograd.grad(value, (h, weight, bias)))
    none = torch.zeros(0, dtype=torch.long, device=device)
    empty = torch.zeros(0, 4, dtype=torch.float64, device=device, requires_grad=True)
    assert nt.functional.linear_nash_loss(empty, weight, none, **settings).isnan()
    value = nt.functional.linear_nash_loss(empty, weight, none, reduction="sum", **settings)
    assert value.item() == 0
    dh, dw = torch.autograd.grad(value, (empty, weight))
    assert dh.shape == (0, 4)
    assert not dw.any()


@on_each_device
@both_losses
def test_a_bad_row_spoils_its_own_gradient(smoothing, device, way):
    h, weight, _, target = draw(9, 4, 20, device=device)
    with torch.no_grad():
        h[3, 1] = torch.nan
    value = nt.functional.linear_nash_loss(h, weight, target, smoothing=smoothing, reduction="none")
    assert value.isnan().nonzero().flatten().tolist() == [3]
    dh, dw = torch.autograd.grad(value.sum(), (h, weight))
    assert dh.isnan().any(1).nonzero().flatten().tolist() == [3]
    assert dw.isnan().any()


@on_each_device
@both_losses
def test_backward_twice_is_the_same_and_second_derivatives_are_refused(smoothing, device, way):
    h, weight, bias, target = draw(40, 4, 50, device=device)
    value = nt.functional.linear_nash_loss(h, weight, target, bias, smoothing=smoothing)
    first = torch.autograd.grad(3 * value, (h, weight, bias), retain_graph=True)
    for ours, again in zip(first, torch.autograd.grad(3 * value, (h, weight, bias), retain_graph=True), strict=True):
        assert_near(ours, again, torch.float64)
    slope = torch.autograd.grad(value, h, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(slope.sum(), h)


@on_each_device
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_mean_over_nothing_has_gradients_of_zero_in_every_type(dtype, device):
    leaves = draw(3, 4, 10, dtype=dtype, device=device)[:3]
    value = nt.functional.linear_nash_loss(*leaves[:2], torch.full((3,), -100, device=device), leaves[2], smoothing=0.3)
    assert value.isnan()
    assert not any(gradient.any() for gradient in torch.autograd.grad(value, leaves))


@on_each_device
def test_float16_loses_nothing_of_a_mean_over_many_rows_in_either_backward_pass(device):
    h, weight, _, target = draw(20_000, 8, 1000, dtype=torch.float16, device=device)
    value = nt.functional.linear_nash_loss(h, weight, target, smoothing=1.0)
    right = reference((h, weight, None), target, smoothing=1.0)[1][1]
    for _ in range(2):
        dw = torch.autograd.grad(value, weight, retain_graph=True)[0]
        assert (dw.double() - right).norm() <= 2e-3 * right.norm()


@on_each_device
@both_losses
def test_only_the_gradients_that_are_needed(smoothing, device, way):
    h, weight, bias, target = draw(40, 4, 50, device=device)
    _, right = reference((h, weight, bias), target, smoothing)
    for needed in range(3):
        leaves = [x.detach().requires_grad_(i == needed) for i, x in enumerate((h, weight, bias))]
        nt.functional.linear_nash_loss(leaves[0], leaves[1], target, leaves[2], smoothing=smoothing).backward()
        assert [x.grad is None for x in leaves] == [i != needed for i in range(3)]
        assert_near(leaves[needed].grad, right[needed], torch.float64, 10)
    with torch.no_grad():
        value = nt.functional.linear_nash_loss(h, weight, target, bias, smoothing=smoothing)
    assert not value.requires_grad


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
@on_each_device
@both_losses
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_compiles_without_a_graph_break(smoothing, reduction, device):
    torch._dynamo.reset()
    head = nt.NashHead(4, 30, smoothing=smoothing, reduction=reduction, device=device, dtype=torch.float64)
    compiled = torch.compile(lambda h, y: head(2 * h, y).sum(), fullgraph=True, backend="aot_eager")
    for n in (16, 9):
        h, _, _, target = draw(n, 4, 30, device=device, seed=n)
        leaves = (h, head.weight, head.bias)
        value, right = compiled(h, target), head(2 * h, target).sum()
        assert_near(value, right.detach(), torch.float64)
        for ours, theirs in zip(torch.autograd.grad(value, leaves), torch.autograd.grad(right, leaves), strict=True):
            assert_near(ours, theirs, torch.float64)


@on_each_device
@both_losses
def test_autocast_gives_float32_and_gradients_of_the_parameters_type(smoothing, device):
    h, weight, bias, target = draw(16, 4, 30, dtype=torch.float32, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        value = nt.functional.linear_nash_loss(h, weight, target, bias, smoothing=smoothing)
    assert value.dtype == torch.float32
    value.backward()
    assert h.grad.dtype == weight.grad.dtype == torch.float32


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # PyTorch's own, at to_dense
@on_each_device
@both_losses
def test_predictions_without_full_scores(smoothing, device, small_chunks):
    head = nt.NashHead(4, 30, device=device, dtype=torch.float64, smoothing=smoothing)
    h = draw(21, 4, 30, device=device)[0].detach().reshape(3, 7, 4)
    scores = torch.nn.functional.linear(h, head.weight, head.bias).detach()
    found = head.top(h, 5)
    assert torch.allclose(found.values, scores.topk(5).values)
    assert torch.allclose(scores.gather(-1, found.indices), found.values)
    assert torch.equal(head.predict(h), scores.argmax(-1))
    p = head.strategy(h)
    assert p.is_sparse
    assert p.shape == (3, 7, 30)
    right = nt.functional.strategy(scores.reshape(21, 30)).reshape(3, 7, 30)
    assert torch.allclose(p.to_dense(), right)
    assert p._nnz() == (right != 0).sum()
    assert head.predict(h[0, 0]).shape == ()
    assert torch.allclose(head.strategy(h[0, 0]).to_dense(), right[0, 0])
    q = head.predict_proba(h)
    assert q.is_sparse == (smoothing == 0)
    right = nt.functional.predict_proba(scores.reshape(21, 30), smoothing=smoothing).reshape(3, 7, 30)
    assert torch.allclose(q.to_dense() if smoothing == 0 else q, right)
    assert head.predict_proba(h[:0]).shape == (0, 7, 30)
    assert head.top(h[:0], 2).indices.shape == (0, 7, 2)


def test_scores_are_made_by_chunks():
    sizes = [part.stop - part.start for part in linear_products.row_chunks(8192, 131072, 2, 8192)]
    assert sum(sizes) == 8192
    assert max(sizes) * 131072 * 2 <= 2**29
    assert linear_products.accumulator(torch.float16, 8, 8) == torch.float32
    assert linear_products.accumulator(torch.bfloat16, 8192, 131072) == torch.bfloat16
    assert linear_products.accumulator(torch.bfloat16, 2**18, 131072) == torch.float32


@pytest.mark.parametrize("k", [1, 7, 128, 129, 8192, 8193, 20000])
def test_bits_keep_the_support(k):
    mask = torch.rand(3, k, generator=torch.Generator().manual_seed(k)) < 0.3
    bits = linear_host._pack(mask)
    assert bits.shape == (3, linear_host.row_bytes(k))
    assert torch.equal(linear_host._unpack(bits, linear_host.width(k))[:, :k].bool(), mask)


@both_losses
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_operators_pass_pytorchs_own_checks(smoothing, reduction):
    h, weight, bias, target = (x.detach() for x in draw(9, 4, 30))
    settings = (smoothing, -100, reduction, False, [True, True, True])
    checks = ("test_schema", "test_faketensor")
    arguments = (h, weight, bias, target, None, *settings)
    found = torch.library.opcheck(torch.ops.nashlearn.linear_loss.default, arguments, test_utils=checks)
    assert found == dict.fromkeys(checks, "SUCCESS")
    out, scale, _, bits, inverse, *_ = torch.ops.nashlearn.linear_loss(*arguments)
    arguments = (torch.ones_like(out), h, weight, bias, target, scale, bits, inverse, smoothing, -100, [True] * 3)
    found = torch.library.opcheck(torch.ops.nashlearn.linear_loss_backward.default, arguments, test_utils=checks)
    assert found == dict.fromkeys(checks, "SUCCESS")


def test_the_module_is_a_linear_layer():
    weight = torch.ones(30)
    head = nt.NashHead(4, 30, weight=weight, smoothing=0.3)
    assert set(head.state_dict()) == {"weight", "bias", "class_weight"}
    assert "4, 30, bias=True, smoothing=0.3" in repr(head)
    assert nt.NashHead(4, 30, bias=False).bias is None
    torch.manual_seed(0)
    linear = torch.nn.Linear(4, 30)
    torch.manual_seed(0)
    same = nt.NashHead(4, 30)
    assert torch.equal(linear.weight, same.weight)
    assert torch.equal(linear.bias, same.bias)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_learns_separable_classes(smoothing):
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(50, 16, generator=generator)
    target = torch.randint(0, 50, (500,), generator=generator)
    h = centres[target] + 0.1 * torch.randn(500, 16, generator=generator)
    head = nt.NashHead(16, 50, smoothing=smoothing)
    optimizer = torch.optim.Adam(head.parameters(), 0.05)
    for _ in range(60):
        optimizer.zero_grad()
        head(h, target).backward()
        optimizer.step()
    assert (head.predict(h) == target).float().mean() > 0.98


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nt.NashHead(4, 3, loss="absolute"), "zero_one"),
        (lambda: nt.NashHead(4, 3, weight=torch.ones(2)), "weight must hold one number"),
        (lambda: nt.NashHead(4, 3, smoothing=-1.0)(torch.zeros(2, 4), torch.zeros(2).long()), "smoothing"),
        (lambda: nt.NashHead(4, 3, reduction="all")(torch.zeros(2, 4), torch.zeros(2).long()), "reduction"),
        (lambda: nt.NashHead(4, 3)(torch.zeros(2, 5), torch.zeros(2).long()), "the features of weight"),
        (lambda: nt.NashHead(4, 3)(torch.zeros(2, 4).double(), torch.zeros(2).long()), "one type"),
        (lambda: nt.NashHead(4, 3)(torch.zeros(2, 4), torch.zeros(3).long()), "target must have shape"),
        (lambda: nt.NashHead(4, 3)(torch.zeros(2, 4), torch.zeros(2)), "integer labels"),
        (lambda: nt.NashHead(4, 3)(torch.zeros(2, 4), [0, 1]), "target must be a torch.Tensor; got list"),
        (lambda: nt.NashLoss()([[0.0, 1.0]], torch.zeros(1).long()), "scores must be a torch.Tensor; got list"),
        (lambda: nt.NashHead(4, 3)(torch.zeros(2, 4), torch.zeros(2, device="meta").long()), "target must be on cpu"),
        (lambda: nt.functional.linear_nash_loss(torch.zeros(2, 4), torch.zeros(4), torch.zeros(2).long()), "weight"),
        (
            lambda: nt.functional.linear_nash_loss(
                torch.zeros(2, 4), torch.zeros(3, 4), torch.zeros(2).long(), torch.zeros(2)
            ),
            "bias",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(TypeError if "Tensor" in message else ValueError, match=message):
        make()


@both_losses
def test_labels_out_of_range_are_named_on_the_host(smoothing):
    with pytest.raises(IndexError, match=r"labels 0\.\.2 or ignore_index=-100; got 3"):
        nt.NashHead(4, 3, smoothing=smoothing)(torch.zeros(2, 4), torch.tensor([0, 3]))
