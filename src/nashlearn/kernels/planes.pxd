"""The best mixture of planes, for kernels that mix."""

# Move x (n,) to argmax <offset, x> - x' gram x / 2 over the simplex, near enough; slope (n,) is scratch.
cdef void mix(
    Py_ssize_t n, const double* offset, const double* gram, double* x, double* slope
) noexcept nogil
