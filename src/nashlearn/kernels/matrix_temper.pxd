"""The tempered game of a matrix: its equilibrium, and how that turns with the scores."""

from nashlearn.kernels.core_simplex cimport Matrix

cdef extern from "matrix_temper.h" nogil:
    double temper_softmax(const double* z, double m, Py_ssize_t k, double* q, double* top) noexcept
    void temper_mixture(const double* W, const double* q, Py_ssize_t k, Py_ssize_t n, double* c) noexcept
    void temper_along(const double* x, const double* y, double r, Py_ssize_t k, double* z) noexcept
    void temper_difference(const double* x, const double* y, Py_ssize_t k, double* z) noexcept
    double temper_moments(
        const double* q, const double* y, double mass, Py_ssize_t k, double* second, double* third
    ) noexcept
    void temper_centred(
        const double* x, const double* y, double shift, const double* root, Py_ssize_t k, double* a
    ) noexcept
    void temper_roots(const double* q, Py_ssize_t k, double* root) noexcept
    Py_ssize_t temper_lowest(const double* x, Py_ssize_t n) noexcept

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
    double top, mass  # the largest entry of z, and the sum of the exponentials relative to that
    Py_ssize_t most, k, options
    Py_ssize_t s  # how many are in play
    Py_ssize_t lowest  # the cheapest option against q

cdef Temper new_temper(Py_ssize_t options, Py_ssize_t k, size_t* at) noexcept nogil
# Find q for p, a strategy; return the gap of both, relative to the matrix's scale.
cdef double respond(const Matrix* loss, Temper* t, double m, const double* p) noexcept nogil
# Take p, whose z, q and c are there already.
cdef void taken(Temper* t, const double* p) noexcept nogil
# Write one option into p, the cheapest where nobody has a cost, and find its q; return the gap.
cdef double begin_at_one(const Matrix* loss, Temper* t, double m, double* p) noexcept nogil
# A gap that is of the order of rounding; m is mu over the matrix's scale.
cdef double closed_gap(double m) noexcept nogil
# Improve p, whose q has been found, until its gap is closed, and return that.
cdef double improve(const Matrix* loss, Temper* t, double m, double gap, double* p) noexcept nogil
# v <- J v at the equilibrium (q, p).
cdef void turn(const Matrix* loss, Temper* t, double mu, const double* q, const double* p, double* v) noexcept nogil
