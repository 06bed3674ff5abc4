"""Steps of block-coordinate ascent on trees with hashed features: the best mixture of the replies to each sentence.

See :mod:`nashlearn.training.methods.block_replies` for the dual point and for what a visit maximises. What depends on
no weights is drafted before, in threads (``nashlearn.kernels.reply_drafts``).
"""

from libc.math cimport fabs
from nashlearn.kernels.checks cimport DOUBLE, extent, vector, vector_out
from nashlearn.kernels.hashed_arcs cimport Sentences, scale
from nashlearn.kernels.planes cimport mix
from nashlearn.kernels.reply_drafts cimport Draft, Drafts, Kept, add, offsets, reply_rows, times
from nashlearn.kernels.scratch cimport Scratch, doubles, indices

cdef double _FAINT = 1e-9  # entries of replies that are left out


cdef struct Desk:  # what a visit works on: m replies and a new one, their weights x, entropies h and products g
    double** row  # where the arcs of each reply are
    double* x
    double* h
    double* g
    double* curvature  # g times the rate
    double* worth
    double* offset
    double* mixed
    double* slope
    double* move  # of each arc in use
    Py_ssize_t* stays  # the replies that are stored


cdef size_t _lay(Desk* desk, Py_ssize_t slots, Py_ssize_t most, size_t at) noexcept nogil:
    """Room for one reply more than there are slots and for sentences of ``most`` arcs."""
    cdef size_t begin = at
    cdef Py_ssize_t m = slots + 1
    desk.row, desk.stays = <double**> indices(&at, m), indices(&at, m)
    desk.x, desk.h, desk.worth, desk.offset = doubles(&at, m), doubles(&at, m), doubles(&at, m), doubles(&at, m)
    desk.mixed, desk.slope = doubles(&at, m), doubles(&at, m)
    desk.g, desk.curvature = doubles(&at, m * m), doubles(&at, m * m)
    desk.move = doubles(&at, most)
    return at - begin


cdef void _merge_lightest(const Desk* desk, Py_ssize_t m, Py_ssize_t arcs) noexcept nogil:
    """Replace the two replies of the least weight by their mixture; the second of them gets weight 0."""
    cdef double* x = desk.x
    cdef double* g = desk.g
    cdef Py_ssize_t a = 0, b = 1, j
    cdef double total, of_a, of_b
    if x[b] < x[a]:
        a, b = b, a
    for j in range(2, m):
        if x[j] < x[a]:
            a, b = j, a
        elif x[j] < x[b]:
            b = j
    a, b = min(a, b), max(a, b)
    total = x[a] + x[b]
    of_a, of_b = x[a] / total, x[b] / total
    for j in range(arcs):
        desk.row[a][j] = of_a * desk.row[a][j] + of_b * desk.row[b][j]
    x[a], x[b] = total, 0.0
    desk.h[a] = of_a * desk.h[a] + of_b * desk.h[b]
    for j in range(m):
        g[a * m + j] = of_a * g[a * m + j] + of_b * g[b * m + j]
    for j in range(m):
        g[j * m + a] = of_a * g[j * m + a] + of_b * g[j * m + b]


cdef void _store(
    const Desk* desk, Py_ssize_t m, const Kept* kept, Py_ssize_t i, Py_ssize_t start, Py_ssize_t arcs
) noexcept nogil:
    """Move the replies of positive weight to the first slots of sentence ``i``."""
    cdef Py_ssize_t slots = kept.slots, slot = 0, j, a, b
    cdef double* weight = kept.weight + i * slots
    cdef double* gram = kept.gram + i * slots * slots
    cdef double* to
    for j in range(slots):
        weight[j] = 0.0
    for j in range(m):
        if desk.x[j] > 0.0:
            to = kept.arcs + slot * kept.total + start
            if to != desk.row[j]:
                for a in range(arcs):
                    to[a] = desk.row[j][a]
            weight[slot], kept.entropy[i * slots + slot] = desk.x[j], desk.h[j]
            desk.stays[slot] = j
            slot += 1
    for a in range(slot):
        for b in range(slot):
            gram[a * slots + b] = desk.g[desk.stays[a] * m + desk.stays[b]]


cdef bint _remixed(Desk* desk, const Draft* draft, double* w, double rate, double* slope) noexcept nogil:
    """Move the weights of the replies, and ``w`` with them, to the best mixture; False where the last wins nothing.

    ``slope`` is what the last of them gains over the mixture.
    """
    cdef Py_ssize_t j, t, m = draft.m, count = draft.count
    cdef double total = 0.0, step
    times(draft, desk.row, w, desk.worth)
    for j in range(m):
        desk.worth[j] = desk.h[j] + desk.worth[j]
        total += desk.x[j] * desk.worth[j]
    slope[0] = desk.worth[m - 1] - total
    if not slope[0] > 0.0:
        return False
    for j in range(m):
        total = 0.0
        for t in range(m):
            total += desk.g[j * m + t] * desk.x[t]
            desk.curvature[j * m + t] = rate * desk.g[j * m + t]
        desk.offset[j] = desk.worth[j] + rate * total
        desk.mixed[j] = desk.x[j]
    mix(desk.offset, desk.curvature, m, desk.mixed, desk.slope)
    for t in range(count):
        desk.move[t] = 0.0
    for j in range(m):
        step = desk.mixed[j] - desk.x[j]
        if desk.mixed[j] != desk.x[j]:
            for t in range(count):
                desk.move[t] += step * desk.row[j][draft.place[t]]
    for t in range(count):
        if desk.move[t] != 0.0:
            add(draft, w, t, -rate * scale() * desk.move[t])
    total = 0.0
    for j in range(m):
        total += desk.mixed[j]
    for j in range(m):
        desk.x[j] = desk.mixed[j] / total
    return True


cdef double _visit(
    Desk* desk, const Draft* draft, const Kept* kept, Py_ssize_t i, Py_ssize_t start, Py_ssize_t arcs, double entropy,
    double omega, double alpha, double* w
) noexcept nogil:
    """Add the drafted reply to sentence ``i`` and go to the best mixture; the gap seen, times ``omega``."""
    cdef Py_ssize_t slots = kept.slots, m = draft.m, j, t
    cdef double slope = 0.0
    cdef bint crowded
    for j in range(m - 1):
        desk.x[j], desk.h[j] = kept.weight[i * slots + j], kept.entropy[i * slots + j]
        for t in range(m - 1):
            desk.g[j * m + t] = kept.gram[(i * slots + j) * slots + t]
    desk.x[m - 1], desk.h[m - 1] = 0.0, entropy
    for j in range(m):
        desk.g[j * m + m - 1] = desk.g[(m - 1) * m + j] = draft.products[j]
    if m == 1:
        desk.x[0] = 1.0
    else:
        if not _remixed(desk, draft, w, omega / alpha, &slope):
            return 0.0
        crowded = m > slots
        for j in range(m):
            crowded = crowded and desk.x[j] > 0.0
        if crowded:
            _merge_lightest(desk, m, arcs)
    _store(desk, m, kept, i, start, arcs)
    return omega * slope


def visit(Drafts drafts not None, w, omega, double alpha, reply_entropy):
    """Add the drafted replies to their sentences, one after another, and go to the best mixtures; the sum of gaps seen.

    ``omega`` and ``reply_entropy`` are of all sentences. ``w`` follows, but for a first reply. Cost: twice the features
    of the arcs in use, as the drafts. A draft serves once.
    """
    cdef Sentences data = drafts.data
    cdef const Py_ssize_t* at = drafts.at
    cdef const double* share = <const double*> vector(omega, "omega", DOUBLE, data.n)
    cdef const double* secured = <const double*> vector(reply_entropy, "reply_entropy", DOUBLE, data.n)
    cdef double* weights = <double*> vector_out(w, "w", DOUBLE, (<Py_ssize_t> 1) << data.bits)
    cdef Py_ssize_t i, j, count = drafts.count, most = 0
    cdef double gaps = 0.0
    cdef bint fits = True
    cdef Desk desk
    cdef Scratch room
    if not alpha > 0.0:
        raise ValueError(f"alpha must be positive; got {alpha}")
    for j in range(count):
        most = max(most, at[drafts.part[j] + 1] - at[drafts.part[j]])
    room = Scratch(_lay(&desk, drafts.kept.slots, most, 0))
    _lay(&desk, drafts.kept.slots, most, <size_t> room.at)
    with nogil:
        for j in range(count):
            i = drafts.part[j]
            fits = reply_rows(&drafts.kept, i, at[i], drafts.reply, desk.row) == drafts.drafts[j].m
            if not fits:
                break
            gaps += _visit(
                &desk, drafts.drafts + j, &drafts.kept, i, at[i], at[i + 1] - at[i], secured[i], share[i], alpha, weights
            )
    drafts.forget()
    if not fits:
        raise ValueError("drafts must be of the replies that are kept")
    return gaps


def without_faint(Sentences data not None, q, part, offset, reply, entropy):
    """Replies ``q`` of the sentences ``part`` into ``reply``, without entries whose features cost as much as others'.

    Takes off their entropies what the entries that are left out may have added.
    """
    cdef Py_ssize_t i, j, d, h, n, count = extent(part, "part", 0)
    cdef const Py_ssize_t* own = data.listed(part, count)
    cdef const Py_ssize_t* at = offsets(data, own, count, offset)
    cdef const double* given = <const double*> vector(q, "q", DOUBLE, data.entries(own, count))
    cdef double* out = <double*> vector_out(reply, "reply", DOUBLE, at[data.n])
    cdef double* secured = <double*> vector_out(entropy, "entropy", DOUBLE, data.n)
    cdef double* row
    cdef double total, lost
    with nogil:
        for j in range(count):
            i, n = own[j], data.size[own[j]]
            for d in range(n):
                row, total, lost = out + at[i] + d * (n + 1), 0.0, 0.0
                for h in range(n + 1):
                    row[h] = given[h] if given[h] >= _FAINT else 0.0
                    total += row[h]
                    lost += fabs(given[h] - row[h])
                for h in range(n + 1):
                    row[h] /= total
                secured[i] -= 2.0 * lost
                given += n + 1
