"""How training reads one example. cimport this to add another kind of rows."""

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

ctypedef fused real:
    float
    double

# w += step x, for n entries.
cdef inline void add_row(const real* x, double step, Py_ssize_t n, double* w) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        w[j] += step * x[j]
