"""Tables and messages of trees of cliques, in the log domain; ``eps = 0`` is max-product.

A table is built by adding one node after another, in about two additions for each entry however many edges there are.
"""

from libc.math cimport INFINITY, log
from libc.string cimport memcpy, memset
from nashlearn.kernels.junctions cimport Junctions
from nashlearn.kernels.scratch cimport doubles, indices
from nashlearn.kernels.simd cimport simd_max, simd_sum
from nashlearn.kernels.vectors cimport vec_exponentials


cdef size_t lay_desk(
    Junctions t, Desk* d, Py_ssize_t nodes, Py_ssize_t entries, Py_ssize_t messages, size_t at
) noexcept:
    cdef size_t begin = at
    d.E, d.inside, d.outside = doubles(&at, entries), doubles(&at, messages), doubles(&at, messages)
    d.lift, d.room = doubles(&at, nodes * t.k), doubles(&at, 2 * t.k)
    d.b, d.z, d.u = doubles(&at, t.largest), doubles(&at, t.largest), doubles(&at, t.largest)
    d.stack = doubles(&at, 2 * t.largest + 2 * t.widest * t.k)
    d.singles = doubles(&at, t.widest * t.k)
    d.entry = indices(&at, t.size)
    return at - begin


cdef inline Py_ssize_t _spread(double* x, Py_ssize_t size, const double* each, Py_ssize_t k) noexcept nogil:
    """Make of ``x`` (size) the sums ``each[a] + x`` (k, size), in place; returns their number."""
    cdef Py_ssize_t a, j
    for a in range(k - 1, 0, -1):
        for j in range(size):
            x[a * size + j] = x[j] + each[a]
    for j in range(size):
        x[j] += each[0]
    return k * size


cdef void add_up_lifts(const Desk* d, const Py_ssize_t* nodes, Py_ssize_t count) noexcept nogil:
    """Write into ``u`` what replies add to the joint states of some nodes."""
    cdef Py_ssize_t i, size = 1
    d.u[0] = 0.0
    for i in range(count - 1, -1, -1):
        size = _spread(d.u, size, d.lift + nodes[i] * d.k, d.k)


cdef void build_table(Junctions t, const Desk* d, Py_ssize_t c) noexcept nogil:
    """Write the table of clique ``c``: scores of the nodes that it owns and of its edges, last node first."""
    cdef Py_ssize_t k = d.k, width = t.starts[c + 1] - t.starts[c], size = 1, grown, at, j, a, i, x, e, last
    cdef const Py_ssize_t* scope = t.scope + t.starts[c]
    cdef const Py_ssize_t* pair
    cdef const double* T
    cdef double* E = d.E + t.table[c]
    cdef double* each = d.singles
    cdef double own
    E[0] = 0.0
    for at in range(width - 1, -1, -1):
        for a in range(k - 1, -1, -1):
            own = d.f[scope[at] * k + a] if at < t.own[c] else 0.0
            memset(each, 0, width * k * sizeof(double))
            last = -1
            for i in range(t.pair_starts[c], t.pair_starts[c + 1]):
                pair = t.pairs + 4 * i
                if pair[0] == at:
                    T, last = d.T + pair[2] * d.apart, 0
                    for j in range(k):
                        each[pair[1] * k + j] = T[j * k + a] if pair[3] else T[a * k + j]
            d.u[0], grown = own, 1
            if last == 0:
                for j in range(width - 1, at, -1):
                    grown = _spread(d.u, grown, each + j * k, k)
                for x in range(size):
                    E[a * size + x] = E[x] + d.u[x]
            else:
                for x in range(size):
                    E[a * size + x] = E[x] + own
        size *= k


cdef void pool_rows(const Desk* d, Py_ssize_t rows, Py_ssize_t columns, double* out) noexcept nogil:
    """``out[a] = eps log sum_s exp(b(a, s) / eps)``; ``b`` is lost."""
    cdef Py_ssize_t a, s
    cdef double* b = d.b
    cdef double low
    if columns == 1:
        memcpy(out, b, rows * sizeof(double))
        return
    for a in range(rows):
        out[a] = simd_max(b, columns, -INFINITY)
        low = finite(out[a])
        for s in range(columns):
            b[s] -= low
        b += columns
    if d.eps > 0.0:
        vec_exponentials(d.b, 0.0, d.eps, rows * columns, d.z)
        for a in range(rows):
            if out[a] > -INFINITY:
                out[a] += d.eps * log(simd_sum(d.z + a * columns, columns))


cdef void pool_columns(const Desk* d, Py_ssize_t rows, Py_ssize_t columns, double* out) noexcept nogil:
    """``out[s] = eps log sum_a exp(b(a, s) / eps)``; ``b`` is lost."""
    cdef Py_ssize_t a, s
    cdef double* b = d.b
    cdef double* z = d.z
    if columns == 1:
        pool_rows(d, 1, rows, out)
        return
    memcpy(out, b, columns * sizeof(double))
    for a in range(1, rows):
        for s in range(columns):
            out[s] = b[a * columns + s] if b[a * columns + s] > out[s] else out[s]
    if d.eps > 0.0:
        for a in range(rows):
            for s in range(columns):
                b[a * columns + s] -= finite(out[s])
        vec_exponentials(b, 0.0, d.eps, rows * columns, z)
        for a in range(1, rows):
            for s in range(columns):
                z[s] += z[a * columns + s]
        for s in range(columns):
            if out[s] > -INFINITY:
                out[s] += d.eps * log(z[s])


cdef void fill_table(
    Junctions t, const Desk* d, Py_ssize_t c, Py_ssize_t skip, bint lifted, bint around
) noexcept nogil:
    cdef Py_ssize_t a, s, x, rows = t.rows[c], columns = t.columns[c], e = t.child[c]
    cdef double* b = d.b
    cdef const double* told
    cdef const int* column
    memcpy(b, d.E + t.table[c], rows * columns * sizeof(double))
    while e >= 0:
        if e != skip:
            column, told = t.maps + t.places[e], d.inside + t.message[e]
            for x in range(rows * columns):
                b[x] += told[column[x]]
        e = t.sibling[e]
    if lifted:
        add_up_lifts(d, t.scope + t.starts[c], t.own[c])
        for a in range(rows):
            for s in range(columns):
                b[a * columns + s] += d.u[a]
    if around and t.parent[c] >= 0:
        told = d.outside + t.message[c]
        for a in range(rows):
            for s in range(columns):
                b[a * columns + s] += told[s]


cdef void tell_parent(Junctions t, const Desk* d, Py_ssize_t c) noexcept nogil:
    fill_table(t, d, c, -1, True, False)
    pool_columns(d, t.rows[c], t.columns[c], d.inside + t.message[c])


cdef void tell_child(Junctions t, const Desk* d, Py_ssize_t c) noexcept nogil:
    """What lies outside clique ``c``, from its parent: sums over the entries of the same column."""
    cdef Py_ssize_t x, s, u = t.parent[c], size = t.rows[u] * t.columns[u], columns = t.columns[c]
    cdef double* out = d.outside + t.message[c]
    cdef double* total = d.u
    cdef const int* column = t.maps + t.places[c]
    fill_table(t, d, u, c, True, True)
    for s in range(columns):
        out[s] = -INFINITY
    for x in range(size):
        if d.b[x] > out[column[x]]:
            out[column[x]] = d.b[x]
    if d.eps > 0.0:
        memset(total, 0, columns * sizeof(double))
        for x in range(size):
            d.b[x] -= finite(out[column[x]])
        vec_exponentials(d.b, 0.0, d.eps, size, d.z)
        for x in range(size):
            total[column[x]] += d.z[x]
        for s in range(columns):
            if out[s] > -INFINITY:
                out[s] += d.eps * log(total[s])
