"""The losses as functions; :mod:`nashlearn.torch` has them as modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nashlearn.torch import linear_ops, ops, repeated
from nashlearn.torch.checks import check_settings, sum_type
from nashlearn.torch.markov import markov_loss
from nashlearn.torch.operators import transformed
from nashlearn.torch.specification import SMOOTHING, Specification, specify

__all__ = ["linear_nash_loss", "markov_loss", "nash_loss", "predict", "predict_proba", "strategy"]

_INTEGERS = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64}


def _rows(scores: Tensor, spec: Specification) -> Tensor:
    """Scores (n, k) of every position of (k,), (N, k) or (N, k, d1, ...)."""
    if scores.dim() == 0 or not scores.is_floating_point():
        raise ValueError(
            f"scores must be a floating point tensor (C,), (N, C) or (N, C, d1, ...); got {scores.dtype} of shape "
            f"{tuple(scores.shape)}"
        )
    k = scores.shape[0 if scores.dim() == 1 else 1]
    if k == 0 or k != (spec.n_labels or k):
        raise ValueError(f"scores must have {spec.n_labels or 'at least one'} classes; got shape {tuple(scores.shape)}")
    if scores.dim() == 2:
        return scores
    return scores.reshape(1, k) if scores.dim() == 1 else scores.movedim(1, -1).reshape(-1, k)


def _in_place(rows: Tensor, scores: Tensor) -> Tensor:
    """Rows (n, m) with their entries where ``scores`` has its classes."""
    if scores.dim() <= 2:
        return rows.reshape(*scores.shape[:-1], rows.shape[1])
    return rows.reshape(scores.shape[0], *scores.shape[2:], rows.shape[1]).movedim(-1, 1)


def _checked_target(target: Tensor, places: tuple[int, ...]) -> Tensor:
    if target.dtype not in _INTEGERS:
        raise ValueError(f"target must hold integer labels; got {target.dtype}")
    if target.shape != places:
        raise ValueError(
            f"target must have shape {tuple(places)}, that of scores without classes; got {tuple(target.shape)}"
        )
    return target if target.dim() == 1 else target.reshape(-1)


def _check_place(*required: str, **tensors: Tensor | None) -> None:
    """Refuse what is no tensor, and tensors that lie elsewhere than the first: kernels are given addresses."""
    device = None
    for name, one in tensors.items():
        if one is None and name not in required:
            continue
        if not isinstance(one, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor; got {type(one).__name__}")
        device = device or one.device
        if one.device != device:
            raise ValueError(f"{name} must be on {device}, as what it is used with; it is on {one.device}")


def _class_weights(weight: Tensor, k: int) -> Tensor:
    if weight.shape != (k,):
        raise ValueError(f"weight must hold one number for each class; got shape {tuple(weight.shape)}")
    return weight.detach()


def _shares(
    labels: Tensor | None, k: int, places: tuple[int, ...], weight: Tensor | None, sample_weight: Tensor | None
) -> Tensor | None:
    """What multiplies each element: the weight of its class, its own, both or neither."""
    share = None
    if weight is not None and labels is not None:
        share = _class_weights(weight, k)[labels.clamp(0, k - 1).to(torch.int64)]
    if sample_weight is not None:
        if sample_weight.shape != places:
            raise ValueError(f"sample_weight must have shape {tuple(places)}; got {tuple(sample_weight.shape)}")
        each = sample_weight.detach().reshape(-1)
        share = each if share is None else share * each
    return share if share is None else share.contiguous()


def nash_loss(
    scores: Tensor,
    target: Tensor,
    loss: Any = "zero_one",
    *,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    smoothing: float = SMOOTHING,
    label_smoothing: float = 0.0,
    values: Any = None,
    abstain_cost: float = 0.5,
) -> Tensor:
    """The adversarial surrogate ``F(scores) - scores_y`` of a multiclass loss; see :class:`nashlearn.torch.NashLoss`.

    Shapes, ``weight``, ``ignore_index``, ``reduction``, ``label_smoothing`` and targets that are probabilities are
    those of :func:`torch.nn.functional.cross_entropy`.
    """
    spec = specify(loss, values=values, abstain_cost=abstain_cost)
    if weight is None and sample_weight is None and not label_smoothing and spec.plain:  # a step like one before
        wide = torch.is_autocast_enabled("cuda")
        settings = (spec.name, spec.price, smoothing, ignore_index, reduction, wide)
        if (answer := repeated.again(scores, target, None, settings)) is not None:
            return answer
    check_settings(reduction, smoothing, label_smoothing=label_smoothing)
    _check_place("scores", "target", scores=scores, target=target, weight=weight, sample_weight=sample_weight)
    rows = _rows(scores, spec)
    places = scores.shape[:1] + scores.shape[2:] if scores.dim() > 1 else torch.Size(())
    params = spec.params
    if params.numel():
        params = params.to(scores.device)
    elif torch.compiler.is_compiling():  # a graph is to stay on one device
        params = scores.new_empty((0,), dtype=params.dtype)
    game = (spec.name, spec.price, float(smoothing), ignore_index)
    wide = torch.is_autocast_enabled(scores.device.type)
    if target.is_floating_point():
        if target.shape != scores.shape:
            raise ValueError(
                f"target must have shape {tuple(scores.shape)}, that of scores, where it holds probabilities; got "
                f"{tuple(target.shape)}"
            )
        share = _shares(None, rows.shape[1], places, None, sample_weight)
        answer, mass = _of_probabilities(rows, _rows(target, spec), weight, share, params, game, label_smoothing)
    else:
        labels = _checked_target(target, places)
        share = _shares(labels, rows.shape[1], places, weight, sample_weight)
        if not label_smoothing and not transformed():
            answer = ops.loss(rows, labels, share, params, (*game, reduction, wide))
            return answer if reduction != "none" or scores.dim() == 2 else answer.reshape(places)
        answer, mass = _of_labels(rows, labels, weight, share, sample_weight, params, game, label_smoothing)
    answer = answer.reshape(places) if reduction == "none" else answer.sum()
    answer = answer / mass.sum() if reduction == "mean" else answer
    return answer if wide else answer.to(scores.dtype)


def _of_labels(
    rows: Tensor, labels: Tensor, weight: Tensor | None, share: Tensor | None, sample_weight: Tensor | None,
    params: Tensor, game: tuple, label_smoothing: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Weighted losses of rows, and the weights that a mean divides by.

    A target that is mixed with the uniform distribution, each class times its weight ``w``, has the loss
    ``((1 - s) w_y + s mean(w)) (F - f_y) + s mean(w (f_y - f))`` for ``label_smoothing`` ``s``.
    """
    answer = ops.each(rows, labels, params, game)
    counted = labels != game[-1]
    mass = answer.new_ones(labels.shape) if share is None else share.to(answer.dtype)
    if not label_smoothing:
        return answer * mass.where(counted, 0.0), mass.where(counted, 0.0)
    k = rows.shape[1]
    f = rows.to(answer.dtype)
    truth = f.gather(1, labels.to(torch.int64).clamp(0, k - 1)[:, None])
    w = f.new_ones(k) if weight is None else weight.detach().to(f)
    own = f.new_ones(labels.shape) if sample_weight is None else sample_weight.detach().reshape(-1).to(f)
    mixed = (1.0 - label_smoothing) * mass + label_smoothing * w.mean() * own
    apart = ((truth - f) * w).mean(1) * own
    answer = (answer * mixed + label_smoothing * apart).where(counted, 0.0)
    return answer, mass.where(counted, 0.0)


def _of_probabilities(
    rows: Tensor, target: Tensor, weight: Tensor | None, share: Tensor | None, params: Tensor, game: tuple,
    label_smoothing: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The same for a distribution ``t`` of the labels, each times its weight: ``<t, F - f>``."""
    k = rows.shape[1]
    f = rows.to(sum_type(rows.dtype))
    t = target.to(f.dtype)
    if label_smoothing:
        t = (1.0 - label_smoothing) * t + label_smoothing / k
    if weight is not None:
        t = t * _class_weights(weight, k).to(t)
    best = rows.detach().argmax(1)
    each = ops.each(rows, best, params, (*game[:-1], -1))  # every row counts
    # 0 times infinity counts as 0: a label that is ruled out and was not seen.
    apart = (f.gather(1, best[:, None]) - f).masked_fill(f.isneginf() & (t == 0), 0.0)
    answer = t.sum(1) * each + (apart * t).sum(1)
    mass = each.new_ones(each.shape) if share is None else share.to(each.dtype)
    return answer * mass, mass


def linear_nash_loss(
    h: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    *,
    class_weight: Tensor | None = None,
    smoothing: float = SMOOTHING,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The zero-one loss of the scores ``h Wᵀ + b``, which are made by chunks and never kept.

    ``h`` is (..., d), ``weight`` (k, d), ``bias`` (k,), ``target`` (...). Equal to :func:`nash_loss` of
    ``linear(h, weight, bias)`` with ``weight=class_weight``; see :class:`nashlearn.torch.NashHead`.
    """
    check_settings(reduction, smoothing)
    tensors = {"h": h, "weight": weight, "target": target}
    _check_place(*tensors, **tensors, bias=bias, class_weight=class_weight)
    h, weight, bias, wide = linear_inputs(h, weight, bias)
    places = h.shape[:-1]
    labels = _checked_target(target, places).contiguous()
    share = _shares(labels, weight.shape[0], places, class_weight, None)
    needs = [torch.is_grad_enabled() and x is not None and x.requires_grad for x in (h, weight, bias)]
    rows = h.reshape(-1, h.shape[-1])
    settings = (float(smoothing), ignore_index, reduction, wide, needs)
    answer = linear_ops.linear_loss(rows, weight, bias, labels, share, settings)
    return answer.reshape(places) if reduction == "none" else answer


def linear_inputs(h: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None, bool]:
    """The three tensors of a linear layer, checked and in one type, and whether autocast chose it."""
    if weight.dim() != 2 or weight.shape[0] == 0 or not weight.is_floating_point():
        raise ValueError(f"weight must be a floating point tensor (classes, features); got shape {tuple(weight.shape)}")
    if h.dim() == 0 or h.shape[-1] != weight.shape[1] or not h.is_floating_point():
        raise ValueError(
            f"h must be a floating point tensor (..., {weight.shape[1]}), the features of weight; got {h.dtype} of "
            f"shape {tuple(h.shape)}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias must hold one number for each class; got shape {tuple(bias.shape)}")
    wide = torch.is_autocast_enabled(h.device.type)
    if wide and h.dtype != torch.float64:
        dtype = torch.get_autocast_dtype(h.device.type)
        h, weight, bias = h.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    if h.dtype != weight.dtype or (bias is not None and bias.dtype != h.dtype):
        raise ValueError(f"h, weight and bias must have one type; got {h.dtype} and {weight.dtype}")
    return h, weight, bias, wide


def strategy(
    scores: Tensor,
    loss: Any = "zero_one",
    *,
    smoothing: float = SMOOTHING,
    values: Any = None,
    abstain_cost: float = 0.5,
) -> Tensor:
    """The predictor's strategy ``p``: probabilities of the options, in the place of the classes. Sparse.

    On CUDA all stay there but the squared loss of more than 64 classes without smoothing, which is solved on the host.
    """
    check_settings("none", smoothing)
    spec = specify(loss, values=values, abstain_cost=abstain_cost)
    rows = _rows(scores, spec).detach()
    return _in_place(ops.strategy(rows, spec.params, spec.name, spec.price, float(smoothing)), scores)


def predict_proba(
    scores: Tensor,
    loss: Any = "zero_one",
    *,
    smoothing: float = SMOOTHING,
    values: Any = None,
    abstain_cost: float = 0.5,
) -> Tensor:
    """Probabilities of the classes: with smoothing the adversary's ``q``; without it the :func:`strategy` ``p``.

    ``q`` is what training fits to the labels' distribution, and positive; ``p`` is sparse and not calibrated.
    """
    if not smoothing > 0:
        return strategy(scores, loss, smoothing=smoothing, values=values, abstain_cost=abstain_cost)
    check_settings("none", smoothing)
    spec = specify(loss, values=values, abstain_cost=abstain_cost)
    rows = _rows(scores, spec).detach()
    return _in_place(ops.probabilities(rows, spec.params, spec.name, spec.price, float(smoothing)), scores)


def predict(
    scores: Tensor,
    loss: Any = "zero_one",
    *,
    smoothing: float = SMOOTHING,
    values: Any = None,
    abstain_cost: float = 0.5,
) -> Tensor:
    """The option of the largest ``p``; for the zero-one loss that is the class of the largest score."""
    spec = specify(loss, values=values, abstain_cost=abstain_cost)
    axis = min(scores.dim() - 1, 1)
    if spec.answers_by_scores:
        _rows(scores, spec)
        return scores.detach().argmax(axis)
    return strategy(scores, spec, smoothing=smoothing).argmax(axis)
