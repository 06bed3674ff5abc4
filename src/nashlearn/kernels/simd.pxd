"""Vectorised loops over rows; see the header for what each of them does."""

cdef extern from "simd.h" nogil:
    double simd_max(const double* x, Py_ssize_t n, double top) noexcept
    double simd_min(const double* x, Py_ssize_t n, double low) noexcept
    double simd_top(const double* x, Py_ssize_t n) noexcept
    void simd_leaders(const double* x, Py_ssize_t n, double* top, Py_ssize_t* at) noexcept
    double simd_sum(const double* x, Py_ssize_t n) noexcept
    double simd_dot(const double* x, const double* y, Py_ssize_t n) noexcept
    double simd_above(const double* x, Py_ssize_t n, double top, double t, Py_ssize_t* count) noexcept
    double simd_within(const double* x, Py_ssize_t n, double top, double t, double u, Py_ssize_t* count) noexcept
    Py_ssize_t simd_excess(const double* x, Py_ssize_t n, double top, double t, double* p) noexcept
    double simd_supported(const double* x, Py_ssize_t n, double top, double mass, Py_ssize_t* count) noexcept
    double simd_gathered(
        const double* x, Py_ssize_t n, double top, double mass, double* room, Py_ssize_t* count
    ) noexcept
    double simd_threshold(const double* x, Py_ssize_t n, double top, double mass) noexcept
