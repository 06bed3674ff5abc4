"""Offsets of scores that all trees share."""

# Scores theta (n, n + 1, labels) less those offsets, into out; what a tree loses by that. Cost: O(n^2).
cdef double shift(const double* theta, Py_ssize_t n, Py_ssize_t labels, bint single_root, double* out) noexcept nogil
