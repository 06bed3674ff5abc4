"""Points near the arborescence polytope moved into it, so that what they secure is a bound without excuse.

An interior point method leaves strategies that violate cuts ``x(arcs into S) >= 1`` by some 1e-8. A dual bound needs a
point of the polytope: such an excess is multiplied by weights of any size. Rows and the single root are scaled to sum
to 1; then the point is mixed with

    u_dh = 1/n  (single root),      u_d,root = 2/(n + 1),  u_dh = 1/(n + 1)  (many roots),

which exceeds every cut of two tokens or more, other than the set of all under a single root, by ``c = (n - 2)/n`` or
``(n - 1)/(n + 1)`` at least. Where the largest violation is ``eps``, a share ``eps / (eps + c)`` of it is enough.
"""

from nashlearn.kernels.checks cimport DOUBLE, INDEX, extent, rising, vector, vector_out
from nashlearn.kernels.scratch cimport Scratch, marks
from nashlearn.kernels.tree_cuts cimport Flow, new_flow, separate

cdef double _ROUNDING = 1e-13


cdef bint _one_root(double* x, Py_ssize_t n) noexcept nogil:
    """Scale the arcs from the root to sum to 1, and the others of each row to make up for it; False where all are 0."""
    cdef Py_ssize_t d, h
    cdef double total = 0.0, old, new, rest
    cdef double* row
    for d in range(n):
        total += x[d * (n + 1)]
    if not total > 0.0:
        return False
    for d in range(n):
        row = x + d * (n + 1)
        old, new, rest = row[0], row[0] / total, 0.0
        row[0] = new
        for h in range(1, n + 1):
            rest += row[h]
        for h in range(1, n + 1):
            if rest > 0.0:
                row[h] *= (1.0 - new) / rest
            elif h != d + 1 and old != new:
                row[h] = (1.0 - new) / (n - 1)
    return True


cdef double _violation(const double* x, Py_ssize_t n, unsigned char* members, const Flow* flow) noexcept nogil:
    """How much the cut that ``x`` violates most lacks to 1, by the cuts of ``separate``, one of which it is."""
    cdef Py_ssize_t c, d, h
    cdef double lack, worst = 0.0
    cdef const unsigned char* inside
    for c in range(separate(x, n, members, n, _ROUNDING, flow)):
        lack, inside = 1.0, members + c * n
        for d in range(n):
            if inside[d]:
                lack -= x[d * (n + 1)]
                for h in range(n):
                    if not inside[h]:
                        lack -= x[d * (n + 1) + h + 1]
        worst = max(worst, lack)
    return worst


cdef double into_polytope(
    double* x, Py_ssize_t n, bint single_root, unsigned char* members, const Flow* flow
) noexcept nogil:
    cdef Py_ssize_t d, h
    cdef double total, worst, excess, even, share = 0.0
    cdef double* row
    for d in range(n):
        row = x + d * (n + 1)
        row[d + 1] = total = 0.0
        for h in range(n + 1):
            row[h] = max(row[h], 0.0)
            total += row[h]
        if not total > 0.0:
            share = 1.0
        for h in range(n + 1):
            row[h] = row[h] / total if total > 0.0 else 0.0
    if single_root and n > 1 and share == 0.0 and not _one_root(x, n):
        share = 1.0
    if share == 0.0:
        worst = _violation(x, n, members, flow)
        excess = (n - 2.0) / n if single_root else (n - 1.0) / (n + 1.0)
        share = worst / (worst + excess) if worst > _ROUNDING else 0.0
    if share > 0.0:
        for d in range(n):
            row = x + d * (n + 1)
            for h in range(n + 1):
                even = 1.0 / n if single_root else (2.0 if h == 0 else 1.0) / (n + 1.0)
                row[h] = (1.0 - share) * row[h] + (share * even if h != d + 1 else 0.0)
    return share


def move_inside(x, size, offset, bint single_root, share):
    """Move points into the polytope, arcs of which none is forbidden; how large a share of each was replaced.

    The arcs of point ``i``, of ``size[i]`` tokens, are ``x[offset[i]:offset[i + 1]]``, row by row; ``share[i]`` is
    written. Cost: O(n^2) and the flows of :func:`nashlearn.kernels.tree_cuts.violated_cuts` for each.
    """
    cdef Py_ssize_t i, most = 0, b = extent(size, "size", 0)
    cdef double* points = <double*> vector_out(x, "x", DOUBLE, -1)
    cdef const Py_ssize_t* n = <const Py_ssize_t*> vector(size, "size", INDEX, b)
    cdef const Py_ssize_t* first = <const Py_ssize_t*> vector(offset, "offset", INDEX, b + 1)
    cdef double* replaced = <double*> vector_out(share, "share", DOUBLE, b)
    cdef size_t at = 0
    cdef Flow flow
    cdef unsigned char* members
    cdef Scratch memory
    rising(first, b, extent(x, "x", 0), "offset")
    for i in range(b):
        if n[i] < 0 or n[i] > first[i + 1] - first[i] or first[i + 1] - first[i] != n[i] * (n[i] + 1):
            raise ValueError(f"offset must leave size (size + 1) arcs for each point; point {i} has {n[i]} tokens")
        most = max(most, n[i])
    flow, members = new_flow(most, &at), marks(&at, most * most)
    memory = Scratch(at)
    at = <size_t> memory.at
    flow, members = new_flow(most, &at), marks(&at, most * most)
    with nogil:
        for i in range(b):
            replaced[i] = into_polytope(points + first[i], n[i], single_root, members, &flow)
