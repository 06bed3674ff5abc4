"""The losses as functions; :mod:`nashlearn.torch` has them as modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nashlearn.torch import linear_ops, ops
from nashlearn.torch.checks import check_settings
from nashlearn.torch.markov import markov_loss
from nashlearn.torch.specification import Specification, specify

__all__ = ["linear_nash_loss", "markov_loss", "nash_loss", "predict", "predict_proba"]

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


def _checked_target(target: Tensor, places: tuple[int, ...]) -> Tensor:
    if target.dtype not in _INTEGERS:
        raise ValueError(f"target must hold integer labels; got {target.dtype}")
    if target.shape != places:
        raise ValueError(
            f"target must have shape {tuple(places)}, that of scores without classes; got {tuple(target.shape)}"
        )
    return target if target.dim() == 1 else target.reshape(-1)


def _shares(
    labels: Tensor, k: int, places: tuple[int, ...], weight: Tensor | None, sample_weight: Tensor | None
) -> Tensor | None:
    """What multiplies each element: the weight of its class, its own, both or neither."""
    share = None
    if weight is not None:
        if weight.shape != (k,):
            raise ValueError(f"weight must hold one number for each class; got shape {tuple(weight.shape)}")
        share = weight.detach()[labels.clamp(0, k - 1).to(torch.int64)]
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
    values: Any = None,
    abstain_cost: float = 0.5,
) -> Tensor:
    """The adversarial surrogate ``F(scores) - scores_y`` of a multiclass loss; see :class:`nashlearn.torch.NashLoss`.

    Shapes, ``weight``, ``ignore_index`` and ``reduction`` are those of :func:`torch.nn.functional.cross_entropy`.
    """
    check_settings(reduction)
    spec = specify(loss, values=values, abstain_cost=abstain_cost)
    rows = _rows(scores, spec)
    places = scores.shape[:1] + scores.shape[2:] if scores.dim() > 1 else torch.Size(())
    labels = _checked_target(target, places)
    share = _shares(labels, rows.shape[1], places, weight, sample_weight)
    params = spec.params
    if params.numel():
        params = params.to(scores.device)
    elif torch.compiler.is_compiling():  # a graph is to stay on one device
        params = scores.new_empty((0,), dtype=params.dtype)
    wide = torch.is_autocast_enabled(scores.device.type)
    answer = ops.loss(rows, labels, share, params, (spec.name, spec.price, ignore_index, reduction, wide))
    return answer if reduction != "none" or scores.dim() == 2 else answer.reshape(places)


def linear_nash_loss(
    h: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    *,
    class_weight: Tensor | None = None,
    smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The zero-one loss of the scores ``h Wᵀ + b``, which are made by chunks and never kept.

    ``h`` is (..., d), ``weight`` (k, d), ``bias`` (k,), ``target`` (...). Equal to
    ``nash_loss(linear(h, weight, bias), target, weight=class_weight)``; see :class:`nashlearn.torch.NashHead`.
    """
    check_settings(reduction, smoothing)
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


def predict_proba(scores: Tensor, loss: Any = "zero_one", *, values: Any = None, abstain_cost: float = 0.5) -> Tensor:
    """The predictor's strategy ``p``: probabilities of the options, in the place of the classes. Sparse.

    On CUDA all stay there but the squared loss of more than 64 classes, which is solved on the host.
    """
    spec = specify(loss, values=values, abstain_cost=abstain_cost)
    rows = _rows(scores, spec)
    p = ops.strategy(rows.detach(), spec.params, spec.name, spec.price)
    if scores.dim() <= 2:
        return p.reshape(*scores.shape[:-1], -1)
    return p.reshape(scores.shape[0], *scores.shape[2:], -1).movedim(-1, 1)


def predict(scores: Tensor, loss: Any = "zero_one", *, values: Any = None, abstain_cost: float = 0.5) -> Tensor:
    """The option of the largest ``p``; for the zero-one loss that is the class of the largest score."""
    spec = specify(loss, values=values, abstain_cost=abstain_cost)
    axis = min(scores.dim() - 1, 1)
    if spec.answers_by_scores:
        _rows(scores, spec)
        return scores.detach().argmax(axis)
    return predict_proba(scores, spec).argmax(axis)
