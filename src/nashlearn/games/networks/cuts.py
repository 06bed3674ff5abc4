"""Best labellings of two-state networks whose neighbours attract each other, by a minimum cut.

With ``x_v`` in {0, 1} and ``w = T(0, 0) + T(1, 1) - T(0, 1) - T(1, 0) >= 0`` at every edge, a score is

    constant + sum_v d_v x_v - sum_uv w_uv (1 - x_u) x_v,

and its maximum is ``constant + sum_v max(d_v, 0)`` less a maximum flow [greig1989]_. Flows are integers in SciPy:
capacities are rounded down, and what is left of them is sent again in finer units, so that every flow gives a bound.
"""

from __future__ import annotations

import time

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from nashlearn.games.networks.stars import Incidence

__all__ = ["cut"]

_LARGEST = 2.0**30  # capacity
_PHASES = 4


def cut(
    g: Incidence, f: np.ndarray, T: np.ndarray, rounding: float, until: float = np.inf
) -> tuple[np.ndarray, float] | None:
    """Labels (n,) that are best up to ``rounding``, and a bound on every labelling's score.

    None where a node has more than two states, a label or pair is forbidden, or an edge does not attract. Past
    ``until`` no finer flow is begun; one that is under way is not broken off.
    """
    if f.shape[1] != 2 or not (np.isfinite(f).all() and np.isfinite(T).all()):
        return None
    n, (u, v) = len(f), g.ends.T
    tables = T[g.table]
    attraction = tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]
    if -attraction.size * attraction.min(initial=0.0) > rounding:
        return None
    attraction = np.maximum(attraction, 0.0)
    d = f[:, 1] - f[:, 0]
    np.add.at(d, u, tables[:, 1, 0] - tables[:, 0, 0])
    np.add.at(d, v, tables[:, 1, 1] - tables[:, 1, 0])
    bound = float(f[:, 0].sum() + tables[:, 0, 0].sum() + np.maximum(d, 0.0).sum())
    source, sink, nodes = n, n + 1, np.arange(n)
    rows = np.concatenate([np.where(d > 0.0, source, nodes), v])
    columns = np.concatenate([np.where(d > 0.0, nodes, sink), u])
    left = sparse.csr_matrix((np.concatenate([abs(d), attraction]), (rows, columns)), shape=(n + 2, n + 2))
    most = float(left.data.sum()) or 1.0  # that can still flow
    for _ in range(_PHASES):
        unit = _LARGEST / most
        if not np.isfinite(unit):
            return None
        capacity = left.copy()
        capacity.data = np.floor(np.minimum(left.data, most) * unit).astype(np.int32)
        found = maximum_flow(capacity.astype(np.int32), source, sink)
        bound -= float(found.flow_value) / unit
        left = sparse.csr_matrix(left - found.flow / unit)
        left.data = np.maximum(left.data, 0.0)
        most = left.nnz / unit
        if most <= rounding or time.monotonic() > until:
            break
    open_arcs = sparse.csr_matrix(capacity - found.flow)
    open_arcs.data = np.maximum(open_arcs.data, 0)
    open_arcs.eliminate_zeros()
    labels = np.zeros(n + 2, dtype=np.int64)
    labels[breadth_first_order(open_arcs, source, return_predecessors=False)] = 1
    return labels[:n], bound
