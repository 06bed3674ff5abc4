"""Products with small tables, rows filled up to a multiple of four; see the header for what each of them does."""

cdef extern from "lanes.h" nogil:
    Py_ssize_t lanes_filled(Py_ssize_t k) noexcept
    void lanes_sum(const double* W, const double* x, Py_ssize_t k, Py_ssize_t n, double* z) noexcept
    void lanes_outer(double* E, const double* x, const double* y, Py_ssize_t k, Py_ssize_t n) noexcept
    void lanes_outers(double* E, const double* x, const double* y, Py_ssize_t k, Py_ssize_t n) noexcept
    void lanes_product(const double* x, const double* y, Py_ssize_t n, double* z) noexcept
    void lanes_scaled_product(const double* x, const double* y, double r, Py_ssize_t n, double* z) noexcept
    double lanes_top_product(const double* w, const double* x, const double* y, Py_ssize_t n, double* z) noexcept
    double lanes_sum_product(const double* w, const double* x, const double* y, Py_ssize_t n, double* z) noexcept
    double lanes_by_top(double* x, Py_ssize_t n) noexcept
