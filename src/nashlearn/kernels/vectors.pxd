"""Small dense loops over rows of k entries; see the header for what each of them does."""

cdef extern from "vectors.h" nogil:
    void vec_product(const double* x, const double* y, Py_ssize_t k, double* z) noexcept
    void vec_scale(double* x, double r, Py_ssize_t k) noexcept
    void vec_add(const double* x, double r, Py_ssize_t k, double* y) noexcept
    void vec_affine(const double* W, const double* x, Py_ssize_t k, Py_ssize_t n, double* z) noexcept
    void vec_rows_dot(const double* W, const double* x, Py_ssize_t k, double* z) noexcept
    void vec_rows_sum(const double* W, const double* x, Py_ssize_t k, double* z) noexcept
    void vec_rows_dot_in_order(const double* W, const double* x, Py_ssize_t k, double* z) noexcept
    void vec_rows_sum_in_order(const double* W, const double* x, Py_ssize_t k, double* z) noexcept
    double vec_flush(double* X, const double* W, const double* T, Py_ssize_t n, double scale, double* E) noexcept
    void vec_logarithms(const double* x, Py_ssize_t k, double* z) noexcept
    void vec_exponentials(const double* x, double top, double eps, Py_ssize_t k, double* z) noexcept
    void vec_softmax_turn(const double* q, double mu, Py_ssize_t k, double* v) noexcept
