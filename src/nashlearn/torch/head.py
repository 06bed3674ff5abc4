"""A classifier's last layer and its loss in one module."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from nashlearn.torch import functional, ops
from nashlearn.torch.linear_products import row_chunks, scores
from nashlearn.torch.specification import SMOOTHING, specify

__all__ = ["NashHead"]

_PARTS = 8
_NONE = torch.empty(0, dtype=torch.float64)  # parameters of the loss


class NashHead(torch.nn.Module):
    """A linear layer over many classes with the zero-one loss on top, without a matrix of scores in memory.

    .. math:: \\ell(h, y) = F_\\mu(W h + b) - (W h + b)_y,\\qquad
              F_\\mu(f) = \\max_q \\langle f, q\\rangle + \\min_p \\langle p, (1 - I) q\\rangle + \\mu H(q)

    Scores are made by chunks of rows and used at once. With ``smoothing=0`` the loss is that of
    :class:`NashLoss` on ``linear(h)``. The adversary ``q`` is uniform on few classes, those above the sparsemax
    threshold, so that the backward pass gathers a few rows of the weight in place of two matrix products; where
    supports are large, as before training, it does take the products. With ``smoothing`` :math:`\\mu > 0` the
    adversary is tempered, :math:`q = \\mathrm{softmax}(\\min(f, \\tau) / \\mu)` with the sparsemax threshold
    :math:`\\tau`: every class counts, the loss is smooth and strictly proper, and all three products remain, but for
    blocks of rows and classes whose probabilities are together below the rounding of the type.

    Parameters
    ----------
    in_features, n_classes : int
    loss : str
        ``"zero_one"``, the one loss there is.
    bias : bool
        Whether scores have an offset for each class.
    smoothing : float
        Weight of the adversary's entropy, in units of the loss. 0 is the exact game, whose step is the fastest;
        positive values make the loss strictly proper, and a language model's top-1 accuracy better.
    weight : Tensor (n_classes,), optional
        What multiplies the loss of each class. The mean is over these weights.
    ignore_index : int
        The target that does not count.
    reduction : {"mean", "sum", "none"}
    device, dtype
        Those of the parameters.

    Attributes
    ----------
    weight : Parameter (n_classes, in_features)
    bias : Parameter (n_classes,) or None

    Notes
    -----
    Memory beyond the gradients: a bit for each score and a chunk of scores. The gradient by the weight is summed in
    float32 where it is gathered, and rounded once for each of at most eight chunks where it is tempered and bfloat16.
    The backward pass of the exact loss, and the forward pass of the tempered one, read one number from the device;
    while a CUDA graph is recorded they do not, and take the products in full.
    Results are deterministic wherever matrix products are.

    Examples
    --------
    >>> import torch
    >>> import nashlearn.torch as nt
    >>> _ = torch.manual_seed(0)
    >>> head = nt.NashHead(8, 1000)
    >>> h, target = torch.randn(4, 8), torch.tensor([1, 2, 3, 999])
    >>> head(h, target).backward()
    >>> head.weight.grad.shape
    torch.Size([1000, 8])
    >>> head.predict(h).shape, head.top(h, 5).indices.shape
    (torch.Size([4]), torch.Size([4, 5]))
    >>> head.strategy(h).is_sparse, head.predict_proba(h).shape
    (True, torch.Size([4, 1000]))
    """

    bias: Tensor | None
    class_weight: Tensor | None

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        loss: str = "zero_one",
        bias: bool = True,
        smoothing: float = SMOOTHING,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        *,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        spec = specify(loss)
        if spec.name != "zero_one" or spec.params.numel():
            raise ValueError(f"loss must be 'zero_one', which has a head; NashLoss takes any loss; got {loss!r}")
        if weight is not None and weight.shape != (n_classes,):
            raise ValueError(f"weight must hold one number for each class; got shape {tuple(weight.shape)}")
        self.in_features, self.n_classes = in_features, n_classes
        self.smoothing, self.ignore_index, self.reduction = smoothing, ignore_index, reduction
        self.weight = torch.nn.Parameter(torch.empty(n_classes, in_features, device=device, dtype=dtype))
        self.register_parameter(
            "bias", torch.nn.Parameter(torch.empty(n_classes, device=device, dtype=dtype)) if bias else None
        )
        self.register_buffer("class_weight", None if weight is None else torch.as_tensor(weight))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters as :class:`torch.nn.Linear` draws its own."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
        torch.nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            torch.nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, h: Tensor, target: Tensor) -> Tensor:
        """The loss of features ``h`` (..., in_features) for integer ``target`` (...)."""
        return functional.linear_nash_loss(
            h,
            self.weight,
            target,
            self.bias,
            class_weight=self.class_weight,
            smoothing=self.smoothing,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )

    @torch.no_grad()
    def top(self, h: Tensor, k: int = 1) -> torch.return_types.topk:
        """The ``k`` largest scores and their classes (..., k), as :func:`torch.topk` returns them."""
        found = zip(*(chunk.topk(k, dim=1) for chunk in self._chunks(h)), strict=True)
        values, indices = (torch.cat(parts).reshape(*h.shape[:-1], k) for parts in found)
        return torch.return_types.topk((values, indices))

    def predict(self, h: Tensor) -> Tensor:
        """The class of the largest score (...)."""
        return self.top(h, 1).indices[..., 0]

    @torch.no_grad()
    def predict_proba(self, h: Tensor) -> Tensor:
        """Probabilities of the classes (..., n_classes): with smoothing the adversary's ``q``; without it ``p``.

        ``q`` is positive throughout and so a dense tensor, of the size of all scores; ``p`` is :meth:`strategy`.
        """
        if not self.smoothing > 0:
            return self.strategy(h)
        q = torch.cat([ops.probabilities(x, _NONE, "zero_one", 0.0, float(self.smoothing)) for x in self._chunks(h)])
        return q.reshape(*h.shape[:-1], self.n_classes)

    @torch.no_grad()
    def strategy(self, h: Tensor) -> Tensor:
        """The predictor's ``p = sparsemax(scores)`` as a sparse tensor (..., n_classes) of its support.

        It does not depend on ``smoothing``. It is not calibrated.
        """
        p = torch.cat([ops.strategy(x, _NONE, "zero_one", 0.0, 0.0).to_sparse() for x in self._chunks(h)])
        rows, labels = p._indices()
        places = torch.unravel_index(rows, h.shape[:-1]) if h.dim() > 1 else ()
        index, size = torch.stack([*places, labels]), (*h.shape[:-1], self.n_classes)
        return torch.sparse_coo_tensor(index, p._values(), size, is_coalesced=True, check_invariants=False)

    def _chunks(self, h: Tensor) -> Any:
        """Scores of a chunk of rows after another; at least one chunk, if empty."""
        h, weight, bias, _ = functional.linear_inputs(h, self.weight, self.bias)
        rows = h.reshape(-1, h.shape[-1])
        for part in list(row_chunks(len(rows), self.n_classes, h.element_size(), len(rows) // _PARTS)) or [slice(0, 0)]:
            yield scores(rows[part], weight, bias)

    def extra_repr(self) -> str:
        """Shown in the module's representation."""
        return (
            f"{self.in_features}, {self.n_classes}, bias={self.bias is not None}, smoothing={self.smoothing:g}, "
            f"ignore_index={self.ignore_index}, reduction={self.reduction!r}"
        )
