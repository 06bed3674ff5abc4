"""The best mixture of planes below an objective."""

# Move x (n) to argmax <offset, x> - x' G x / 2 over the simplex, near enough; slope (n) is scratch.
cdef void mix(const double* offset, const double* G, Py_ssize_t n, double* x, double* slope) noexcept nogil
