"""Kept rows of a Gram matrix: times coefficients, added to the scores of all examples, and parts of them."""

from nashlearn.kernels.checks cimport DOUBLE, INDEX, SINGLE, extent, is_single, matrix, matrix_out, vector, within

ctypedef fused real:
    float
    double


cdef void _pick(
    const double* row, const Py_ssize_t* columns, Py_ssize_t m, double less, real* out
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(m):
        out[j] = <real> (row[columns[j]] - less)


def pick(rows, slots, columns, double less, places, out):
    """Write the columns of row ``slots[s]`` of ``rows`` (kept, n), less a constant, to row ``places[s]`` of ``out``."""
    cdef Py_ssize_t s, size = extent(slots, "slots", 0), m = extent(columns, "columns", 0)
    cdef Py_ssize_t kept = extent(rows, "rows", 0), n = extent(rows, "rows", 1), written = extent(out, "out", 0)
    cdef const double* K = <const double*> matrix(rows, "rows", DOUBLE, kept, n)
    cdef const Py_ssize_t* at = <const Py_ssize_t*> vector(slots, "slots", INDEX, size)
    cdef const Py_ssize_t* to = <const Py_ssize_t*> vector(places, "places", INDEX, size)
    cdef const Py_ssize_t* listed = <const Py_ssize_t*> vector(columns, "columns", INDEX, m)
    cdef bint single = is_single(out, "out")
    cdef void* found = matrix_out(out, "out", SINGLE if single else DOUBLE, written, m)
    within(at, size, kept, "slots")
    within(to, size, written, "places")
    within(listed, m, n, "columns")
    with nogil:
        for s in range(size):
            if single:
                _pick(K + at[s] * n, listed, m, less, <float*> found + to[s] * m)
            else:
                _pick(K + at[s] * n, listed, m, less, <double*> found + to[s] * m)


def push(rows, slots, coefficients, KC):
    """Add row ``slots[s]`` of ``rows`` (kept, n) times ``coefficients[s, c]`` to ``KC[c]``, for all ``s`` and ``c``."""
    cdef Py_ssize_t s, c, j, size = extent(slots, "slots", 0), kept = extent(rows, "rows", 0)
    cdef Py_ssize_t functions = extent(KC, "KC", 0), n = extent(KC, "KC", 1)
    cdef const double* K = <const double*> matrix(rows, "rows", DOUBLE, kept, n)
    cdef const Py_ssize_t* at = <const Py_ssize_t*> vector(slots, "slots", INDEX, size)
    cdef const double* steps = <const double*> matrix(coefficients, "coefficients", DOUBLE, size, functions)
    cdef double* sums = <double*> matrix_out(KC, "KC", DOUBLE, functions, n)
    cdef const double* row
    cdef double* total
    cdef double step
    within(at, size, kept, "slots")
    with nogil:
        for s in range(size):
            row = K + at[s] * n
            for c in range(functions):  # few classes of an example change: the others cost nothing
                step, total = steps[s * functions + c], sums + c * n
                if step != 0.0:
                    for j in range(n):
                        total[j] += step * row[j]


def push_exactly(rows, slots, coefficients, KC, lost):
    """The same; what rounding of the sums loses is added to ``lost``, shaped as ``KC``."""
    cdef Py_ssize_t s, c, j, size = extent(slots, "slots", 0), kept = extent(rows, "rows", 0)
    cdef Py_ssize_t functions = extent(KC, "KC", 0), n = extent(KC, "KC", 1)
    cdef const double* K = <const double*> matrix(rows, "rows", DOUBLE, kept, n)
    cdef const Py_ssize_t* at = <const Py_ssize_t*> vector(slots, "slots", INDEX, size)
    cdef const double* steps = <const double*> matrix(coefficients, "coefficients", DOUBLE, size, functions)
    cdef double* sums = <double*> matrix_out(KC, "KC", DOUBLE, functions, n)
    cdef double* losses = <double*> matrix_out(lost, "lost", DOUBLE, functions, n)
    cdef const double* row
    cdef double* total
    cdef double* less
    cdef double step, term, before, after, taken
    within(at, size, kept, "slots")
    with nogil:
        for s in range(size):
            row = K + at[s] * n
            for c in range(functions):
                step, total, less = steps[s * functions + c], sums + c * n, losses + c * n
                if step != 0.0:
                    for j in range(n):
                        term, before = step * row[j], total[j]
                        after = before + term
                        taken = after - before
                        less[j] += (before - (after - taken)) + (term - taken)
                        total[j] = after
