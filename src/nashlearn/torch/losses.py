"""The losses as modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nashlearn.torch import functional
from nashlearn.torch.specification import SMOOTHING, Specification, specify

__all__ = ["NashLoss"]


class NashLoss(torch.nn.Module):
    """The adversarial surrogate of a multiclass loss, used as :class:`torch.nn.CrossEntropyLoss` is.

    .. math:: \\ell(f, y) = \\max_q \\langle f, q\\rangle + \\min_p \\langle p, L q\\rangle + \\mu H(q) - f_y

    over probabilities ``q`` of the labels and ``p`` of the options; :math:`\\mu` is ``smoothing``, ``H`` the entropy.

    Convex, at least the loss ``L`` of its own prediction, and consistent for it ([fathony2016]_, [fathony2019]_). The
    gradient is ``q - y``. Without smoothing it is piecewise linear. With it the loss is smooth, equal to the expected
    cost of ``p`` plus :math:`\\mu` times the log loss of ``q``, and strictly proper: ``q`` estimates the probabilities
    of the labels. A large :math:`\\mu` makes it cross-entropy of scores divided by :math:`\\mu`. Everything is
    deterministic; sums are taken in float32 for half precision, and the result is float32 under autocast, as
    cross-entropy's is.

    Parameters
    ----------
    loss : str, matrix or game
        ``"zero_one"``, ``"absolute"`` or ``"squared"`` (of ordered classes), ``"abstain"``; a cost matrix ``L`` whose
        entry (i, j) is what option ``i`` costs when the class is ``j``; or a game of :mod:`nashlearn.games`.
    weight : Tensor (C,), optional
        What multiplies the loss of each class. The mean is over these weights.
    ignore_index : int
        The target that does not count.
    reduction : {"mean", "sum", "none"}
    smoothing : float
        Weight :math:`\\mu` of the adversary's entropy, in units of the loss: 1 is as much as a mistake costs. 0 is the
        exact game. Networks trained at 1 had a higher top-1 accuracy than those of cross-entropy on text and on wrong
        labels, and the same on clean ones; 0 did better still on wrong labels and worse on text.
    label_smoothing : float
        Share of the uniform distribution in the target, as of :class:`torch.nn.CrossEntropyLoss`.
    values : sequence of C numbers, optional
        Positions of ordered classes, increasing; 0..C-1 by default.
    abstain_cost : float
        What ``"abstain"`` pays for not answering.

    Notes
    -----
    Scores are (C,), (N, C) or (N, C, d1, ...). Targets are labels, or floating point numbers of the shape of the
    scores: probabilities ``y`` of the classes, whose loss is ``F(f) - <f, y>``. A score of -inf rules a class out; NaN,
    +inf or -inf throughout give a loss of NaN.
    On CUDA the named losses and weighted zero-one games are kernels, and so are cost matrices of up to 64 classes and
    options; larger ones are solved on the device by tensor operations, which now and then wait for it to see whether
    they are done. With smoothing zero-one games, weighted or not, are kernels for any number of classes, and all other
    losses are solved as their cost matrices are. Only the strategy of the squared loss of more than 64 classes without
    smoothing is left to the host. The transforms of :mod:`torch.func` (``grad``, ``vmap``) keep ``q`` for all rows.
    There are no second derivatives.
    A cost matrix leaves a gap of at most 1e-6 of its largest entry, or the row is NaN. Where kernels are shorter than
    their three launches, a CUDA graph of the training step spares the launches.

    Examples
    --------
    >>> import torch
    >>> import nashlearn.torch as nt
    >>> scores = torch.tensor([[0.5, 0.0, 0.0], [3.0, 0.0, 1.0]], requires_grad=True)
    >>> loss = nt.NashLoss("zero_one", smoothing=0)(scores, torch.tensor([0, 2]))
    >>> loss.item()
    1.1666...
    >>> loss.backward()
    >>> scores.grad
    tensor([[-0.3333,  0.1667,  0.1667],
            [ 0.5000,  0.0000, -0.5000]])
    >>> nt.NashLoss("zero_one").predict_proba(scores)  # with entropy, as by default: probabilities of the classes
    tensor([[0.3333, 0.3333, 0.3333],
            [0.6652, 0.0900, 0.2447]])
    """

    weight: Tensor | None
    params: Tensor

    def __init__(
        self,
        loss: Any = "zero_one",
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        *,
        smoothing: float = SMOOTHING,
        label_smoothing: float = 0.0,
        values: Any = None,
        abstain_cost: float = 0.5,
    ):
        super().__init__()
        spec = specify(loss, values=values, abstain_cost=abstain_cost)
        self.name, self.price, self.n_labels = spec.name, spec.price, spec.n_labels
        self.ignore_index, self.reduction = ignore_index, reduction
        self.smoothing, self.label_smoothing = smoothing, label_smoothing
        self.register_buffer("params", spec.params, persistent=False)
        self.register_buffer("weight", None if weight is None else torch.as_tensor(weight))

    @property
    def specification(self) -> Specification:
        """What the functions of :mod:`nashlearn.torch.functional` take as ``loss``."""
        return Specification(self.name, self._buffers["params"], self.price, self.n_labels)  # type: ignore[arg-type]

    def forward(self, scores: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The loss of ``scores`` for labels or probabilities, each element times ``sample_weight`` if given."""
        return functional.nash_loss(
            scores,
            target,
            self.specification,
            weight=self._buffers["weight"],
            sample_weight=sample_weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            smoothing=self.smoothing,
            label_smoothing=self.label_smoothing,
        )

    def predict(self, scores: Tensor) -> Tensor:
        """The option of the largest ``p``; for the zero-one loss that is the class of the largest score."""
        return functional.predict(scores, self.specification, smoothing=self.smoothing)

    def predict_proba(self, scores: Tensor) -> Tensor:
        """Probabilities of the classes: ``q`` with smoothing; without it ``p``, which is sparse and not calibrated."""
        return functional.predict_proba(scores, self.specification, smoothing=self.smoothing)

    def strategy(self, scores: Tensor) -> Tensor:
        """The predictor's strategy ``p``, with the options in the place of the classes. Sparse."""
        return functional.strategy(scores, self.specification, smoothing=self.smoothing)

    def extra_repr(self) -> str:
        """Shown in the module's representation."""
        return (
            f"{self.name!r}, smoothing={self.smoothing:g}, ignore_index={self.ignore_index}, "
            f"reduction={self.reduction!r}, label_smoothing={self.label_smoothing:g}"
        )
