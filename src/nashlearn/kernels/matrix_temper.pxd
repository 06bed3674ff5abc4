"""The tempered game of a matrix: its equilibrium, and how that turns with the scores."""

from nashlearn.kernels.core_simplex cimport Matrix

cdef struct Temper:  # a game under way
    double* f  # the scores over the matrix's scale, the largest of them 0, written by the caller
    double* z  # f + L' p
    double* q
    double* root  # the square roots of q
    double* y  # L' d for a direction d of p
    double* trial  # q along the way
    double* c  # L q
    double* x
    double* w
    double* u
    double* W  # (most, k)
    double* T  # (options, most)
    Py_ssize_t* S  # the options in play, the heaviest first
    Py_ssize_t* basis  # the vector of W that each of them added, -1 for none
    Py_ssize_t most, k, options
    Py_ssize_t s  # how many are in play
    Py_ssize_t lowest  # the cheapest option against q

cdef Temper new_temper(Py_ssize_t options, Py_ssize_t k, size_t* at) noexcept nogil
# Find q for p, a strategy; return the gap of both, relative to the matrix's scale.
cdef double respond(const Matrix* loss, Temper* t, double m, const double* p) noexcept nogil
# Improve p, whose q has been found, until its gap is of the order of rounding; m is mu over the matrix's scale.
cdef void improve(const Matrix* loss, Temper* t, double m, double gap, double* p) noexcept nogil
# v <- J v at the equilibrium (q, p).
cdef void turn(const Matrix* loss, Temper* t, double mu, const double* q, const double* p, double* v) noexcept nogil
