"""Bilinear games over rows of simplices cut by further constraints, by an interior point method."""

from nashlearn.kernels.interior_newton cimport Saddle

# Bytes of room that a game with m entries, R rows and K constraints needs; more for more of any.
cdef size_t saddle_room(Py_ssize_t m, Py_ssize_t R, Py_ssize_t K) noexcept nogil
# Write both players' strategies x (2, m), p before q, and the potentials y (2, R) of rows and lam (2, K) of
# constraints; return how far they are from optimal, inf where nothing was written. A warm start is read from the same
# arrays. See solve_saddle for tol, max_iter and what the potentials prove.
cdef double saddle_point(
    const Saddle* game, double tol, Py_ssize_t max_iter, bint warm, double* x, double* y, double* lam, void* room
) noexcept nogil
