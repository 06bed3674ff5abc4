"""The loss of Markov networks: chains with masks, and any graph.

Smoothed chains under the zero-one loss run where their scores are: in main memory by the compiled sweep, on CUDA by a
Triton kernel. Everything else (other losses, other graphs, no smoothing, more than 256 labels) is solved on the host:
scores on another device are copied there and strategies back, in :func:`_solve` alone, and the device waits meanwhile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from nashlearn.game import Equilibrium
from nashlearn.games._check import cost_matrix
from nashlearn.games.catalogue import LOSSES, suggested_name
from nashlearn.games.networks.game import check_edges
from nashlearn.torch import chains, ops
from nashlearn.torch.checks import as_array, check_settings, lengths_of, lengths_there, reduced
from nashlearn.torch.operators import by_instance, operator

__all__ = ["MarkovLoss", "markov_loss"]

_WIDEST = 256  # labels that the Triton kernel takes


def _solve(
    node: Tensor, edge: Tensor, target: Tensor | None, mask: Tensor | None, graph: Tensor | None, loss: str,
    costs: Tensor, smoothing: float, tol: float, max_iter: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Loss, gap, ``q - y`` of nodes and edges, and ``p``, as :class:`nashlearn.torch.chains.Room` describes them."""
    room = _fake(node, edge, target, mask, graph, loss, costs)
    if not node.numel():
        return chains.Room(*(part.zero_() for part in room))
    b, n, k = node.shape
    fast = graph is None and smoothing > 0
    if fast and loss == "zero_one" and k <= _WIDEST and ops.on_device(node.device.type):
        with ops.current(node.device):
            lengths = lengths_there(node, mask)
            y = None if target is None else target.contiguous()
            kernel = ops.kernels("chains")
            kernel.solve(node.contiguous(), edge.contiguous(), y, lengths, smoothing, tol, max_iter, room)
        return room
    kind = room.loss.dtype
    f, T = (scores.detach().to("cpu", kind).contiguous() for scores in (node, edge))
    here = torch.ones(b, n, dtype=torch.bool) if mask is None else mask.cpu()
    y = None if target is None else _checked_target(target.cpu(), here, k)
    own = room if node.device.type == "cpu" else chains.Room(*(torch.empty_like(part, device="cpu") for part in room))
    numbers = costs.detach().to("cpu", torch.float64).numpy().tobytes()
    rule = chains.Rule(loss, numbers, smoothing, tol, max_iter)
    lengths = lengths_of(here) if graph is None else here.sum(1)
    if fast:
        chains.solve_chains(f, T, y, lengths, rule, own)
    else:
        chains.solve_graphs(f, T, y, here, _chain(n) if graph is None else graph.cpu(), rule, own)
    if own is not room:
        for part, found in zip(room, own, strict=True):
            part.copy_(found)
    return room


def _fake(
    node: Tensor, edge: Tensor, target: Tensor | None, mask: Tensor | None, graph: Tensor | None, loss: str,
    costs: Tensor, *settings: Any,
) -> chains.Room:  # fmt: skip
    return chains.make_room(node, edge, node.shape[2] if loss else costs.shape[0])


_markov = operator(
    "markov(Tensor node, Tensor edge, Tensor? target, Tensor? mask, Tensor? graph, str loss, Tensor costs,"
    " float smoothing, float tol, int max_iter) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    _solve,
    _fake,
)


@by_instance
def _losses(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    loss, _, nodes, edges, _ = _markov(*arguments)
    return loss, nodes, edges


def _chain(n: int) -> Tensor:
    return torch.stack([torch.arange(n - 1), torch.arange(1, n)], 1)


def _checked_target(target: Tensor, here: Tensor, k: int) -> Tensor:
    wrong = here & ((target < 0) | (target >= k))
    if wrong.any():
        raise IndexError(f"target must hold labels 0..{k - 1} where mask is True; got {target[wrong][0]}")
    return target.to(torch.int64)


def _checked(
    node: Tensor, edge: Tensor, mask: Tensor | None, edges: Any, costs: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Edge scores as (k, k) or (b, m, k, k), and the graph (m, 2), None for chains."""
    if node.dim() != 3 or not node.is_floating_point() or node.shape[2] == 0:
        raise ValueError(f"node_scores must be floating point of shape (b, n, k); got {tuple(node.shape)}")
    b, n, k = node.shape
    if costs.numel() and costs.shape[1] != k:
        raise ValueError(f"loss has costs for {costs.shape[1]} labels; node_scores are for {k}")
    graph = None if edges is None else torch.as_tensor(check_edges(as_array(edges), n))
    m = max(n - 1, 0) if graph is None else len(graph)
    shape = tuple(edge.shape)
    if shape not in ((k, k), (m, k, k), (b, m, k, k)) or not edge.is_floating_point():
        raise ValueError(
            f"edge_scores must be floating point of shape ({k}, {k}), ({m}, {k}, {k}) or ({b}, {m}, {k}, {k}); "
            f"got {edge.dtype} of shape {shape}"
        )
    if edge.device != node.device:
        raise ValueError(f"edge_scores must be on the device of node_scores, {node.device}; got {edge.device}")
    if mask is not None and (mask.shape != node.shape[:2] or mask.dtype != torch.bool):
        raise ValueError(
            f"mask must be boolean of shape {tuple(node.shape[:2])}; got {mask.dtype} of shape {tuple(mask.shape)}"
        )
    return (edge if edge.dim() != 3 else edge.expand(b, m, k, k)), graph


class Rule(NamedTuple):
    """The loss at a node as operators are told of it: a name, empty for a cost matrix, and that matrix."""

    name: str
    costs: Tensor


def _rule(loss: Any) -> Rule:
    if isinstance(loss, Rule):
        return loss
    if isinstance(loss, str):
        if loss not in LOSSES:
            known = f"{', '.join(LOSSES)} or a cost matrix"
            raise ValueError(f"loss must be one of {known}; got {loss!r}.{suggested_name(loss)}")
        return Rule(loss, torch.empty(0, dtype=torch.float64))
    return Rule("", torch.tensor(cost_matrix(as_array(loss), "loss"), dtype=torch.float64))


def markov_loss(
    node_scores: Tensor,
    edge_scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    edges: Any = None,
    loss: Any = "zero_one",
    *,
    smoothing: float = 0.5,
    tol: float = 1e-3,
    max_iter: int = 1000,
    reduction: str = "mean",
) -> Tensor:
    """The adversarial surrogate of a loss of labelings; see :class:`nashlearn.torch.MarkovLoss`."""
    check_settings(reduction, smoothing, tol, max_iter)
    rule = _rule(loss)
    edge, graph = _checked(node_scores, edge_scores, mask, edges, rule.costs)
    if target.shape != node_scores.shape[:2] or target.is_floating_point() or target.dtype == torch.bool:
        raise ValueError(
            f"target must hold integers of shape {tuple(node_scores.shape[:2])}; got {target.dtype} of shape "
            f"{tuple(target.shape)}"
        )
    values = _losses(node_scores, edge, target, mask, graph, *rule, float(smoothing), float(tol), max_iter)
    return reduced(values, reduction, target.numel() if mask is None else mask.sum(), node_scores)


class MarkovLoss(torch.nn.Module):
    """The adversarial surrogate of a loss that adds up over the nodes of a Markov network.

    .. math::
        \\ell(f, T; y) = \\max_q \\langle f, q\\rangle + \\langle T, q_E\\rangle
            + \\min_p \\sum_v p_v^\\top L q_v + \\epsilon H(q) - f(y) - T(y)

    over distributions ``q`` of labelings and ``p_v`` of each node's label [fathony2018]_, [franc2022]_. With smoothing
    the rounds of the sweep end at a gap of ``tol`` a node, and the gradient ``q - y`` is that of the value at ``p``.

    Parameters
    ----------
    loss : {"zero_one", "absolute", "squared"} or matrix
        The loss at each node; a cost matrix has options as rows and labels as columns.
    smoothing : float
        Weight of the entropy of ``q``, in units of the loss. 0 is the game itself, solved exactly on the host.
    tol, max_iter : float and int
        Gap for each node, and number of rounds, at which the smoothed game ends.
    reduction : {"mean", "sum", "none"}
        The mean is over nodes that are not padding; ``"none"`` gives one loss for each instance.

    Notes
    -----
    Node scores are (b, n, k). Edge scores are (k, k) for all edges alike, (m, k, k) or (b, m, k, k); -inf forbids a
    label or a pair. By default node ``t`` is joined to ``t + 1``; ``edges`` (m, 2) names any other graph, solved on the
    host. There, where cycles are too wide, the value is that of the local polytope, an upper bound.
    Scores that hold NaN or +inf, or that leave no labeling, give a loss of NaN.
    On CUDA smoothed chains of up to 256 labels under the zero-one loss stay on the device; for all else scores are
    copied to the host and strategies back, and the device waits meanwhile. A target out of range, or padding that is
    not at the end, gives NaN for what stays there; on the host it is an error.

    Examples
    --------
    >>> import torch
    >>> import nashlearn.torch as nt
    >>> node, edge = torch.zeros(1, 3, 2), torch.zeros(2, 2)
    >>> node[0, :, 1] = 1.0
    >>> loss = nt.MarkovLoss(smoothing=0.5)
    >>> loss(node, edge, torch.tensor([[1, 1, 0]])).item()
    0.6799...
    >>> loss.predict(node, edge)
    tensor([[1, 1, 1]])
    """

    costs: Tensor

    def __init__(
        self,
        loss: Any = "zero_one",
        smoothing: float = 0.5,
        *,
        tol: float = 1e-3,
        max_iter: int = 1000,
        reduction: str = "mean",
    ):
        super().__init__()
        check_settings(reduction, smoothing, tol, max_iter)
        self.name, costs = _rule(loss)
        self.smoothing, self.tol, self.max_iter, self.reduction = float(smoothing), float(tol), int(max_iter), reduction
        self.register_buffer("costs", costs, persistent=False)

    @property
    def rule(self) -> Rule:
        """What :func:`nashlearn.torch.functional.markov_loss` takes as ``loss``."""
        return Rule(self.name, self.costs)

    def forward(
        self, node_scores: Tensor, edge_scores: Tensor, target: Tensor, mask: Tensor | None = None, edges: Any = None
    ) -> Tensor:
        """The loss of labels ``target`` (b, n); ``mask`` (b, n) is True for what is not padding.

        The padding of chains is at the end; with ``edges`` any nodes may be left out, and their edges are too.
        """
        return markov_loss(
            node_scores,
            edge_scores,
            target,
            mask,
            edges,
            self.rule,
            smoothing=self.smoothing,
            tol=self.tol,
            max_iter=self.max_iter,
            reduction=self.reduction,
        )

    @torch.no_grad()
    def solve(
        self, node_scores: Tensor, edge_scores: Tensor, mask: Tensor | None = None, edges: Any = None
    ) -> Equilibrium:
        """The equilibrium as tensors: value and gap (b,), ``q`` of nodes and edges, ``p`` (b, n, options)."""
        edge, graph = _checked(node_scores, edge_scores, mask, edges, self.costs)
        how = (*self.rule, self.smoothing, self.tol, self.max_iter)
        most, gap, nodes, pairs, p = torch.ops.nashlearn.markov(node_scores, edge, None, mask, graph, *how)
        value = entropy = most - gap
        for scores, q in ((node_scores, nodes), (edge, pairs)):
            entropy = entropy - (scores.to(q.dtype) * q).where(q != 0, 0.0).flatten(1).sum(1)
        return Equilibrium(value, (nodes, pairs), p, gap, entropy)  # type: ignore[arg-type]

    def predict_proba(
        self, node_scores: Tensor, edge_scores: Tensor, mask: Tensor | None = None, edges: Any = None
    ) -> Tensor:
        """The predictor's strategy ``p`` (b, n, options), zero in the padding: sparse, not calibrated."""
        found: Any = self.solve(node_scores, edge_scores, mask, edges)
        return found.p.to(node_scores.dtype)

    @torch.no_grad()
    def predict(
        self, node_scores: Tensor, edge_scores: Tensor, mask: Tensor | None = None, edges: Any = None
    ) -> Tensor:
        """The best labeling (b, n), -1 in the padding."""
        edge, graph = _checked(node_scores, edge_scores, mask, edges, self.costs)
        if mask is None:
            mask = torch.ones(node_scores.shape[:2], dtype=torch.bool, device=node_scores.device)
        if graph is None:
            return _best_path(node_scores, edge, mask)
        f, T = (scores.detach().to("cpu", torch.float64) for scores in (node_scores, edge))
        return chains.best_labels(f, T, mask.cpu(), graph).to(node_scores.device)

    def extra_repr(self) -> str:
        """Shown in the module's representation."""
        return f"{self.name or 'cost matrix'!r}, smoothing={self.smoothing:g}, reduction={self.reduction!r}"


def _best_path(node: Tensor, edge: Tensor, mask: Tensor) -> Tensor:
    """Viterbi's labels of chains, all at once, on any device; -1 in the padding."""
    b, n, k = node.shape
    if n == 0 or b == 0:
        return torch.full((b, n), -1, device=node.device)
    best, back = node[:, 0], []
    stay = torch.arange(k, device=node.device).expand(b, k)
    for t in range(1, n):
        table = edge if edge.dim() == 2 else edge[:, t - 1]
        reached, origin = (best[:, :, None] + table).max(1)
        on = mask[:, t, None]
        best = torch.where(on, reached + node[:, t], best)
        back.append(origin.where(on, stay))
    labels = [best.argmax(1)]
    for origin in reversed(back):
        labels.append(origin.gather(1, labels[-1][:, None]).squeeze(1))
    return torch.stack(labels[::-1], 1).masked_fill(~mask, -1)
