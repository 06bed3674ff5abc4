"""The loops of ``crammer_singer``: exact block steps of dual ascent."""

from libc.math cimport fabs
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, INDEX, MARK, extent, matrix_out, vector, vector_out, within
from nashlearn.kernels.scratch cimport Scratch


cdef struct Problem:  # rows in CSR, their labels and squared norms
    Py_ssize_t k
    double C
    const double* data
    const Py_ssize_t* indices
    const Py_ssize_t* indptr
    const Py_ssize_t* y
    const double* norms


cdef void _project(double* z, Py_ssize_t k) noexcept nogil:
    """Euclidean projection of ``z`` onto the simplex, in place, by Michelot's filter."""
    cdef Py_ssize_t j, kept, count = k
    cdef double threshold, total = 0.0
    for j in range(k):
        total += z[j]
    threshold = (total - 1.0) / k
    while True:
        total, kept = 0.0, 0
        for j in range(k):
            if z[j] > threshold:
                total += z[j]
                kept += 1
        threshold = (total - 1.0) / kept
        if kept == count:
            break
        count = kept
    for j in range(k):
        z[j] = max(z[j] - threshold, 0.0)


cdef bint _step(const Problem* s, Py_ssize_t i, double* q, double* W, double* z) noexcept nogil:
    """The exact step for row ``i``, whose strategy is ``q`` (k); whether it moved. ``z`` (k) is scratch."""
    cdef Py_ssize_t e, j, k = s.k
    cdef const double* w
    cdef double* out
    cdef double a = s.C * s.norms[i], change = 0.0, x
    memset(z, 0, k * sizeof(double))
    for e in range(s.indptr[i], s.indptr[i + 1]):
        w, x = W + s.indices[e] * k, s.data[e]
        for j in range(k):
            z[j] += x * w[j]
    z[s.y[i]] -= 1.0
    for j in range(k):
        z[j] = q[j] + z[j] / a
    _project(z, k)
    for j in range(k):
        x = q[j] - z[j]
        q[j] = z[j]
        z[j] = x
        change = max(change, fabs(x))
    if not change > 1e-12:
        return False
    for e in range(s.indptr[i], s.indptr[i + 1]):
        out, x = W + s.indices[e] * k, s.C * s.data[e]
        for j in range(k):
            out[j] += x * z[j]
    return True


def sweep(data, indices, indptr, y, norms, double C, Q, W, order, moved):
    """One pass of exact block steps over the rows ``order``; flags those that moved.

    ``data``, ``indices`` and ``indptr`` are a CSR matrix (n, d) and ``y`` labels 0 .. k - 1, which are not checked;
    ``Q`` (n, k) and ``W`` (d, k) are changed.
    """
    cdef Py_ssize_t t, n = extent(Q, "Q", 0), k = extent(Q, "Q", 1), rows = extent(order, "order", 0)
    cdef Problem s = Problem(
        k=k,
        C=C,
        data=<const double*> vector(data, "data", DOUBLE, -1),
        indices=<const Py_ssize_t*> vector(indices, "indices", INDEX, -1),
        indptr=<const Py_ssize_t*> vector(indptr, "indptr", INDEX, n + 1),
        y=<const Py_ssize_t*> vector(y, "y", INDEX, n),
        norms=<const double*> vector(norms, "norms", DOUBLE, n),
    )
    cdef const Py_ssize_t* chosen = <const Py_ssize_t*> vector(order, "order", INDEX, rows)
    cdef double* q = <double*> matrix_out(Q, "Q", DOUBLE, n, k)
    cdef double* w = <double*> matrix_out(W, "W", DOUBLE, -1, k)
    cdef unsigned char* flags = <unsigned char*> vector_out(moved, "moved", MARK, n)
    cdef Scratch memory = Scratch(k * sizeof(double))
    within(chosen, rows, n, "order")
    with nogil:
        for t in range(rows):
            flags[chosen[t]] = _step(&s, chosen[t], q + chosen[t] * k, w, <double*> memory.at)
