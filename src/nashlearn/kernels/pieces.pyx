"""The proximal step of a small loss matrix, by the pieces on which it is affine.

    max_q  <g, q> - a/2 |q|^2 + min_i (L q)_i   over the simplex

is solved by the ``q`` and the ``p`` whose labels ``R`` and options ``S`` are in play where, with multipliers ``v`` and
``w``,

    q_j >= 0  for j in R,       a q_j + w - g_j - (L' p)_j  = 0  there and >= 0 for other labels,
    p_i >= 0  for i in S,                     (L q)_i - v   = 0  there and >= 0 for other options.

Given ``R`` and ``S``, the ``k + options`` numbers that must not be negative are affine in ``g``: one product tells
whether ``g`` lies in their piece. Where some are negative, these labels and options change sides, which is a step of
Newton's method for equations with kinks [hintermuller2002]_. Rows of training seldom leave their piece and share a few
dozen of them, whose maps are kept. Whoever asks has a method for rows that come to no end here, and for pieces without
a map: too many options for so few labels, or all but dependent ones.

Cost: O((k + options) k) a product; a map costs O(k) of them.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memset
from nashlearn.kernels.quadratic cimport Prox, independent_normals, new_prox, prox_room
from nashlearn.kernels.scratch cimport doubles, indices, marks
from nashlearn.kernels.simd cimport simd_top
from nashlearn.kernels.vectors cimport vec_affine

cdef double _EPS = 1e-13  # relative to the sizes of the matrix and of a
cdef double _EXACT = 2e-13  # by which a map may miss its equations, relative to the same
cdef enum:
    _TRIES = 8
    _ONCE = -1  # the place of a piece that was met once,
    _NONE = -2  # and of one without a map
    _KEYS = 4  # pieces to be met for each that there is room for
    _BITS = 32  # labels and options, beyond which hardly two rows share a piece
    _BYTES = 1 << 24  # of maps; four times as many were no faster


cdef bint few_pieces(Py_ssize_t options, Py_ssize_t k) noexcept nogil:
    return options + k <= _BITS and k > 1


cdef Py_ssize_t _width(Py_ssize_t options, Py_ssize_t k) noexcept nogil:
    return (options + k + 3) // 4 * 4


cdef Pieces* _laid_out(Py_ssize_t options, Py_ssize_t k, size_t* at) noexcept nogil:
    """Addresses from ``at`` on, which is moved on; written down there unless it is 0."""
    cdef Pieces c
    cdef Pieces* found = <Pieces*> marks(at, sizeof(Pieces))
    cdef bint measured = found == NULL
    c.options, c.k, c.width = options, k, _width(options, k)
    c.count, c.met, c.last = 0, 0, (<uint64_t> 1 << k) | 1
    c.most, c.slots = _BYTES // ((k + 1) * c.width * <Py_ssize_t> sizeof(double)), 1
    while c.slots < _KEYS * c.most and c.slots < <Py_ssize_t> 2 << (k + options):  # two for each that there may be
        c.slots *= 2
    c.most = min(c.most, c.slots)
    c.keys, c.places = <uint64_t*> indices(at, c.slots), indices(at, c.slots)
    c.z, c.g = doubles(at, c.width), doubles(at, k)
    c.x, c.c = doubles(at, k), doubles(at, k)
    c.room = marks(at, prox_room(options, k))
    c.maps = doubles(at, c.most * (k + 1) * c.width)
    if not measured:
        found[0] = c
    return found


cdef size_t pieces_room(Py_ssize_t options, Py_ssize_t k) noexcept nogil:
    cdef size_t at = 0
    _laid_out(options, k, &at)
    return at


cdef Pieces* no_pieces(Py_ssize_t options, Py_ssize_t k, const double* L, double a, void* room) noexcept nogil:
    cdef size_t at = <size_t> room
    cdef Pieces* c = _laid_out(options, k, &at)
    cdef double scale = 0.0
    cdef Py_ssize_t i
    for i in range(options * k):
        scale = max(scale, fabs(L[i]))
    c.L, c.a, c.tol = L, a, _EPS * (scale + a)
    memset(c.keys, 0, c.slots * sizeof(uint64_t))
    return c


cdef inline bint _in(uint64_t key, Py_ssize_t i) noexcept nogil:
    return (key >> i) & 1


cdef Prox _core(const Pieces* c, uint64_t key, Py_ssize_t* r, Py_ssize_t* s) noexcept nogil:
    """Labels and options in play, in order, and how many."""
    cdef size_t at = <size_t> c.room
    cdef Prox core = new_prox(c.options, c.k, &at)
    cdef Py_ssize_t i
    r[0] = s[0] = 0
    for i in range(c.k):
        if _in(key, i):
            core.R[r[0]] = i
            r[0] += 1
    for i in range(c.options):
        if _in(key, c.k + i):
            core.S[s[0]] = i
            s[0] += 1
    return core


cdef void _least_norm(Prox* core, Py_ssize_t r, Py_ssize_t s, double* c) noexcept nogil:
    """Coordinates in ``W`` of the shortest ``q`` that meets the equations of ``S`` on ``R``."""
    cdef Py_ssize_t t, m
    c[0] = 1.0 / sqrt(<double> r)
    for t in range(1, s):
        c[t] = 0.0
        for m in range(t):
            c[t] -= core.T[t * core.most + m] * c[m]
        c[t] /= core.T[t * core.most + t]


cdef double _shares(
    Prox* core, double a, Py_ssize_t r, Py_ssize_t s, const double* x, double constant, const double* c
) noexcept nogil:
    """The parts of ``q_R``, into ``d``, and of ``p_S`` that ``x`` and the constant contribute; that of ``w``."""
    cdef Py_ssize_t j, t, m
    cdef double w
    for j in range(r):
        core.d[j] = x[j]
    for t in range(s):
        core.b[t] = 0.0
        for j in range(r):
            core.b[t] += core.W[t * core.k + j] * core.d[j]
        for j in range(r):
            core.d[j] -= core.b[t] * core.W[t * core.k + j]
    for j in range(r):
        core.d[j] = core.d[j] / a if s < r else 0.0
    for t in range(s):
        for j in range(r):
            core.d[j] += constant * c[t] * core.W[t * core.k + j]
        core.b[t] -= constant * a * c[t]
    w, core.p_S[0] = core.b[0], constant
    for t in range(s - 1, 0, -1):
        core.p_S[t] = -core.b[t]
        for m in range(t + 1, s):
            core.p_S[t] -= core.p_S[m] * core.T[m * core.most + t]
        core.p_S[t] /= core.T[t * core.most + t]
        core.p_S[0] -= core.p_S[t]
        w += core.p_S[t] * core.T[t * core.most]
    return w / sqrt(<double> r)


cdef double _column(
    const Pieces* c, const Prox* core, uint64_t key, Py_ssize_t r, Py_ssize_t s, Py_ssize_t entry, double w, double* out
) noexcept nogil:
    """Write what the parts at hand add to a piece's numbers, ``g_entry`` being 1; by how much they miss equations."""
    cdef Py_ssize_t i, j, t, k = c.k
    cdef double number, missed = 0.0, v = 0.0, mass = 0.0
    for j in range(r):
        v += c.L[core.S[0] * k + core.R[j]] * core.d[j]
        mass += core.d[j]
    t = 0
    for j in range(k):
        number = w - (1.0 if j == entry else 0.0)
        for i in range(s):
            number -= core.p_S[i] * c.L[core.S[i] * k + j]
        if _in(key, j):
            missed = max(missed, fabs(number + c.a * core.d[t]))
            number = core.d[t]
            t += 1
        out[j] = number
    t = 0
    for i in range(c.options):
        number = -v
        for j in range(r):
            number += c.L[i * k + core.R[j]] * core.d[j]
        if _in(key, k + i):
            missed = max(missed, fabs(number))
            number = core.p_S[t]
            t += 1
        out[k + i] = number
    return max(missed, c.tol / _EPS * fabs(mass - (1.0 if entry < 0 else 0.0)))


cdef bint _map(Pieces* c, uint64_t key, double* out) noexcept nogil:
    """Write the map of a piece, the constant first; False where it has none that rounding would leave."""
    cdef Py_ssize_t i, j, r = 0, s = 0, k = c.k
    cdef Prox core = _core(c, key, &r, &s)
    cdef double reach = c.tol / _EPS, w, missed
    if r == 0 or s == 0 or s > r or independent_normals(c.L, &core, r, 0, s) < s:
        return False
    memset(out, 0, (k + 1) * c.width * sizeof(double))
    _least_norm(&core, r, s, c.c)
    for j in range(r):
        c.x[j] = c.L[core.S[0] * k + core.R[j]]
    w = _shares(&core, c.a, r, s, c.x, 1.0, c.c)
    missed = _column(c, &core, key, r, s, -1, w, out)
    memset(c.x, 0, r * sizeof(double))
    for j in range(r):
        c.x[j] = 1.0
        w = _shares(&core, c.a, r, s, c.x, 0.0, c.c)
        c.x[j] = 0.0
        i = core.R[j]
        missed = max(missed, reach * _column(c, &core, key, r, s, i, w, out + (i + 1) * c.width))
    for i in range(k):
        if not _in(key, i):
            out[(i + 1) * c.width + i] = -1.0
    for i in range(k + c.options):
        if not _in(key, i):
            for j in range(k + 1):
                out[j * c.width + i] /= reach
            out[i] += _EPS
    return missed <= _EXACT * reach


cdef const double* _found(Pieces* c, uint64_t key) noexcept nogil:
    """The map of a piece, made when it is asked for again; NULL where it has none or there is no room."""
    cdef Py_ssize_t slot = <Py_ssize_t> ((key * <uint64_t> 0x9E3779B97F4A7C15) >> 32) & (c.slots - 1)
    cdef Py_ssize_t size = (c.k + 1) * c.width
    while c.keys[slot] != key:
        if c.keys[slot] == 0:
            if 2 * c.met < c.slots:
                c.keys[slot], c.places[slot] = key, _ONCE
                c.met += 1
            return NULL
        slot = (slot + 1) & (c.slots - 1)
    if c.places[slot] == _ONCE and c.count < c.most:
        c.places[slot] = _NONE
        if _map(c, key, c.maps + c.count * size):
            c.places[slot] = c.count
            c.count += 1
    return c.maps + c.places[slot] * size if c.places[slot] >= 0 else NULL


cdef uint64_t _worst(const Pieces* c) noexcept nogil:
    """Of the numbers of a piece the most negative."""
    cdef Py_ssize_t i, worst = 0
    for i in range(1, c.k + c.options):
        if c.z[i] < c.z[worst]:
            worst = i
    return <uint64_t> 1 << worst


cdef uint64_t _key(const Pieces* c, const double* q, const double* p) noexcept nogil:
    """The labels and options that are in play."""
    cdef Py_ssize_t i
    cdef uint64_t key = 0
    for i in range(c.k):
        key |= <uint64_t> (q[i] > 0.0) << i
    for i in range(c.options):
        key |= <uint64_t> (p[i] > 0.0) << (c.k + i)
    return key


cdef void begin_at(Pieces* c, const double* q, const double* p) noexcept nogil:
    c.last = _key(c, q, p)


cdef bint step_in_piece(Pieces* c, const double* g, double* q, double* p) noexcept nogil:
    cdef Py_ssize_t i, tries, k = c.k
    cdef double top = simd_top(g, k)
    cdef uint64_t key = _key(c, q, p), flips
    cdef const double* at
    for i in range(k):
        c.g[i] = g[i] - top
    if key >> k == 0:
        key = c.last
    at = _found(c, key)
    for tries in range(_TRIES):
        if at == NULL:
            break
        vec_affine(at, c.g, k, c.width, c.z)
        flips = 0
        for i in range(k + c.options):
            flips |= <uint64_t> (not c.z[i] >= 0.0) << i
        if flips == 0:
            for i in range(k):
                q[i] = c.z[i] if _in(key, i) else 0.0
            for i in range(c.options):
                p[i] = c.z[k + i] if _in(key, k + i) else 0.0
            c.last = key
            return True
        at = _found(c, key ^ flips)
        if at == NULL:  # not all at once
            flips = _worst(c)
            at = _found(c, key ^ flips)
        key ^= flips
    return False
