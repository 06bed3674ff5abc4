"""Bounds of the value of a game over arborescences from strategies (n, n + 1, labels)."""

from nashlearn.kernels.tree_entries cimport Stage

cdef struct Bounds:  # of the game's value, and what the lower one consists of beside the scores
    double upper
    double lower
    double entropy
    double risk

# What p may lose at most, smoothed about q; the best gain of each arc into arc. Uses s.heads.
cdef double concede(Stage* s, const double* p, const double* q, double* arc) noexcept nogil
# Bounds from both strategies; s.arc and s.other get what arcs are worth against them.
cdef Bounds certify_strategies(Stage* s, const double* p, const double* q) noexcept nogil
# Move strategies over arcs, none of which is forbidden, into the polytope; bounds from where they are then.
cdef Bounds certify_inside(Stage* s, double* p, double* q) noexcept nogil
# Divide the rows of x (n, n + 1) by their sums, which rounding may have moved away from 1.
cdef void scale_rows(double* x, Py_ssize_t n) noexcept nogil
# Whether each of the rows, so many numbers long, sums to 1 up to rounding.
cdef bint whole(const double* x, Py_ssize_t rows, Py_ssize_t size) noexcept nogil
