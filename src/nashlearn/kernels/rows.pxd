"""How training reads one example. cimport this to add another kind of rows."""

from nashlearn.kernels.scratch cimport Scratch

cdef class Rows:
    cdef readonly Py_ssize_t n  # examples

    # The address of weights for k classes, laid out as this kind of rows wants them.
    cdef double* weights(self, object W, Py_ssize_t k) except NULL
    # Write the scores W_c x_i of the m of k classes listed into f, which has room for k.
    cdef void scores(
        self, Py_ssize_t i, const double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, double* f
    ) noexcept nogil
    # Add delta_c x_i to the weights of the m of k classes listed.
    cdef void step(
        self, Py_ssize_t i, double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, const double* delta
    ) noexcept nogil

cdef class Square(Rows):
    cdef object K, kept  # the matrix, and the weights
    cdef const void* at
    cdef bint single, light
    cdef Py_ssize_t apart, functions
    cdef Py_ssize_t first, last  # examples whose scores steps reach at once
    cdef Scratch memory  # of the steps that the others wait for, for each function
    cdef Py_ssize_t room
    cdef Py_ssize_t* waiting
    cdef Py_ssize_t* owners
    cdef double* steps
    cdef double* W

    # Let steps move these scores of so many functions, of all examples at once.
    cdef double* keep(self, object W, double* at, Py_ssize_t functions) noexcept
    # Make room for so many steps that some examples may wait for.
    cdef int make_room(self, Py_ssize_t room) except -1
    # Have the next steps reach the scores of examples first .. last - 1 at once, and the others when they are paid.
    cdef void reach(self, Py_ssize_t first, Py_ssize_t last) noexcept nogil
    cdef void pay(self, Py_ssize_t start, Py_ssize_t stop) noexcept nogil  # of examples start .. stop - 1 those who wait
    # How many steps are to be paid, and forget them: all examples have them.
    cdef Py_ssize_t owed(self) noexcept nogil
    cdef void forget(self) noexcept nogil
    # Add a row of the matrix times ``step`` to the scores of a function.
    cdef void add(self, Py_ssize_t i, Py_ssize_t function, double step) noexcept nogil
    # Add the columns start .. stop - 1 of some rows, each times its step, to the scores of a function.
    cdef void columns(
        self, const Py_ssize_t* rows, const double* steps, Py_ssize_t size, Py_ssize_t function, Py_ssize_t start,
        Py_ssize_t stop
    ) noexcept nogil


ctypedef fused real:
    float
    double

ctypedef fused total:
    float
    double

# w += step x, for n entries.
cdef inline void add_row(const real* x, double step, Py_ssize_t n, double* w) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        w[j] += step * x[j]

# Add so many columns of some rows of a matrix, each times its step, to w: four at a time share what they read of w.
cdef inline void add_rows(
    const real* K, Py_ssize_t apart, const Py_ssize_t* rows, const double* steps, Py_ssize_t size, Py_ssize_t columns,
    total* w
) noexcept nogil:
    cdef const real* a
    cdef const real* b
    cdef const real* c
    cdef const real* d
    cdef Py_ssize_t s = 0, j
    cdef total p, q, r, t
    while s + 4 <= size:
        a, b, c, d = K + rows[s] * apart, K + rows[s + 1] * apart, K + rows[s + 2] * apart, K + rows[s + 3] * apart
        p, q, r, t = <total> steps[s], <total> steps[s + 1], <total> steps[s + 2], <total> steps[s + 3]
        for j in range(columns):
            w[j] += (p * a[j] + q * b[j]) + (r * c[j] + t * d[j])
        s += 4
    while s < size:
        a, p = K + rows[s] * apart, <total> steps[s]
        for j in range(columns):
            w[j] += p * a[j]
        s += 1
