"""Kept rows of a Gram matrix, times coefficients, added to the scores of all examples."""

from nashlearn.kernels.checks cimport DOUBLE, INDEX, extent, matrix, matrix_out, vector, within


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
