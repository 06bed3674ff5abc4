"""Dense rows, of which compiled code takes products with all classes at once."""

from nashlearn.kernels.rows cimport Rows

cdef class Dense(Rows):
    cdef object X
    cdef const void* at
    cdef bint single
    cdef Py_ssize_t d
    cdef double bias

    # How many rows are best read together, so that a second product finds them in the cache. As many numbers, and at
    # least one for each class, are room for the next two.
    cdef Py_ssize_t together(self) noexcept nogil
    # Write the scores of n rows, from the first on, into f (n, k); W is (k, d + 1).
    cdef void put_scores(
        self, Py_ssize_t first, Py_ssize_t n, const double* W, Py_ssize_t k, double* f, Py_ssize_t* room
    ) noexcept nogil
    # Add r_i x_i' of those rows to G (k, d + 1).
    cdef void put_moments(
        self, Py_ssize_t first, Py_ssize_t n, const double* r, Py_ssize_t k, double* G, Py_ssize_t* room
    ) noexcept nogil
    cdef void add_all(
        self, Py_ssize_t first, Py_ssize_t n, const double* r, Py_ssize_t k, double* G, Py_ssize_t* classes
    ) noexcept nogil
    cdef void add_some(
        self, Py_ssize_t first, Py_ssize_t n, const double* r, Py_ssize_t k, double* G, Py_ssize_t* rows
    ) noexcept nogil
