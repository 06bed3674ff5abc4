"""Kept rows of a Gram matrix: times coefficients, added to the scores of all examples, and parts of them."""

from libc.math cimport fabs
from nashlearn.kernels.checks cimport (
    DOUBLE,
    INDEX,
    SINGLE,
    extent,
    is_single,
    matrix,
    matrix_out,
    vector,
    vector_out,
    within,
)
from nashlearn.kernels.rows cimport add_rows, real
from nashlearn.kernels.scratch cimport Scratch


cdef enum:
    _HIGH = 64  # rows and columns that are multiplied together
    _BROAD = 512
    _LINE = 16  # adjacent rows that are written together: what they read lies together


cdef void _pick(const double* row, const Py_ssize_t* columns, Py_ssize_t m, real* out) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(m):
        out[j] = <real> row[columns[j]]


def pick(rows, slots, columns, places, out):
    """Write the columns of row ``slots[s]`` of ``rows`` (kept, n) to the first ones of row ``places[s]`` of ``out``."""
    cdef Py_ssize_t s, width = extent(out, "out", 1), size = extent(slots, "slots", 0), m = extent(columns, "columns", 0)
    cdef Py_ssize_t kept = extent(rows, "rows", 0), n = extent(rows, "rows", 1), written = extent(out, "out", 0)
    cdef const double* K = <const double*> matrix(rows, "rows", DOUBLE, kept, n)
    cdef const Py_ssize_t* at = <const Py_ssize_t*> vector(slots, "slots", INDEX, size)
    cdef const Py_ssize_t* to = <const Py_ssize_t*> vector(places, "places", INDEX, size)
    cdef const Py_ssize_t* listed = <const Py_ssize_t*> vector(columns, "columns", INDEX, m)
    cdef bint single = is_single(out, "out")
    cdef void* found = matrix_out(out, "out", SINGLE if single else DOUBLE, written, width)
    if m > width:
        raise ValueError(f"out must have at least {m} columns; got {width}")
    within(at, size, kept, "slots")
    within(to, size, written, "places")
    within(listed, m, n, "columns")
    with nogil:
        for s in range(size):
            if single:
                _pick(K + at[s] * n, listed, m, <float*> found + to[s] * width)
            else:
                _pick(K + at[s] * n, listed, m, <double*> found + to[s] * width)


def mirror(square, rows, others):
    """Write what ``rows`` of a symmetric matrix have in the columns ``others`` into those rows, where it is missing."""
    cdef Py_ssize_t first, last, s, e, i, n = extent(square, "square", 0)
    cdef Py_ssize_t size = extent(rows, "rows", 0), count = extent(others, "others", 0)
    cdef float* K = <float*> matrix_out(square, "square", SINGLE, n, n)
    cdef const Py_ssize_t* known = <const Py_ssize_t*> vector(rows, "rows", INDEX, size)
    cdef const Py_ssize_t* to = <const Py_ssize_t*> vector(others, "others", INDEX, count)
    cdef const float* row
    within(known, size, n, "rows")
    within(to, count, n, "others")
    with nogil:
        first = 0
        while first < count:
            last = min(first + _LINE, count)
            for s in range(size):
                i = known[s]
                row = K + i * n
                for e in range(first, last):
                    K[to[e] * n + i] = row[to[e]]
            first = last


def push(rows, slots, coefficients, KC, Py_ssize_t start, Py_ssize_t stop):
    """Add row ``slots[s]`` of ``rows`` (kept, n) times ``coefficients[s, c]`` to ``KC[c]``, for all ``s`` and ``c``.

    Columns ``start .. stop - 1`` alone are added to. Few classes of an example change: the others cost nothing.
    """
    cdef Py_ssize_t s, c, e, first, last, at_once, listed, size = extent(slots, "slots", 0)
    cdef Py_ssize_t kept = extent(rows, "rows", 0), functions = extent(KC, "KC", 0), n = extent(KC, "KC", 1)
    cdef const double* K = <const double*> matrix(rows, "rows", DOUBLE, kept, n)
    cdef const Py_ssize_t* at = <const Py_ssize_t*> vector(slots, "slots", INDEX, size)
    cdef const double* given = <const double*> matrix(coefficients, "coefficients", DOUBLE, size, functions)
    cdef double* sums = <double*> matrix_out(KC, "KC", DOUBLE, functions, n)
    cdef Scratch memory = Scratch(_HIGH * functions * (sizeof(double) + sizeof(Py_ssize_t)) + functions * sizeof(Py_ssize_t))
    cdef double* steps = <double*> memory.at
    cdef Py_ssize_t* some = <Py_ssize_t*> (steps + _HIGH * functions)
    cdef Py_ssize_t* count = some + _HIGH * functions
    within(at, size, kept, "slots")
    if not 0 <= start <= stop <= n:
        raise ValueError(f"start and stop must be columns in order; got {start} and {stop}, of {n}")
    with nogil:
        first = 0
        while first < size:
            last = min(first + _HIGH, size)
            for c in range(functions):
                count[c] = 0
                for s in range(first, last):
                    if given[s * functions + c] != 0.0:
                        e = c * _HIGH + count[c]
                        steps[e], some[e] = given[s * functions + c], at[s]
                        count[c] += 1
            at_once = start
            while at_once < stop:  # a tile of the rows stays in the cache for all classes
                listed = min(<Py_ssize_t> _BROAD, stop - at_once)
                for c in range(functions):
                    e = c * _HIGH
                    add_rows(K + at_once, n, some + e, steps + e, count[c], listed, sums + c * n + at_once)
                at_once += listed
            first = last


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


def magnitudes(C, scores):
    """The sums of ``|C|`` and of ``|C scores|``, both (n, k)."""
    cdef Py_ssize_t j, n = extent(C, "C", 0), k = extent(C, "C", 1)
    cdef const double* coefficient = <const double*> matrix(C, "C", DOUBLE, n, k)
    cdef const double* f = <const double*> matrix(scores, "scores", DOUBLE, n, k)
    cdef double total = 0.0, products = 0.0
    with nogil:
        for j in range(n * k):
            if coefficient[j] != 0.0:  # most examples have none
                total += fabs(coefficient[j])
                products += fabs(coefficient[j] * f[j])
    return total, products


def largest_sizes(scores, out):
    """The largest ``|scores|`` (n, k) of each row, into ``out`` (n,)."""
    cdef Py_ssize_t i, c, n = extent(scores, "scores", 0), k = extent(scores, "scores", 1)
    cdef const double* f = <const double*> matrix(scores, "scores", DOUBLE, n, k)
    cdef double* most = <double*> vector_out(out, "out", DOUBLE, n)
    with nogil:
        for i in range(n):
            most[i] = 0.0
            for c in range(k):
                most[i] = max(most[i], fabs(f[i * k + c]))
