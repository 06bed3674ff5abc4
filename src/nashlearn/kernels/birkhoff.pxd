"""Euclidean projection onto the matchings' polytope."""

from nashlearn.kernels.assignment cimport Sides

# Bytes of room that the functions below need.
cdef size_t birkhoff_room(const Sides* sides) noexcept nogil
# Overwrite d (columns) with (Hessian + ridge)^-1 d at the support of x (N1, N2); False where that fails.
cdef bint newton_step(const Sides* sides, const double* x, double ridge, double* d, void* room) noexcept nogil
# Write the projection of scores into x (N1, N2), from the potentials v (columns), which the last ones overwrite; return
# how far its columns are from summing to 1. Ends where none misses it by more than tol; rows always sum to 1. A score
# of -inf forbids its pair; some matching must remain.
cdef double project_matching(
    const Sides* sides, const double* scores, double tol, double* v, double* x, void* room
) noexcept nogil
