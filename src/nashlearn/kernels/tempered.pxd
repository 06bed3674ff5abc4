"""What training shares with the solver of tempered rows."""

from nashlearn.kernels.loss cimport Loss


cdef struct Certificate:
    double upper  # what the best adversary gets against p
    double least  # min_i (L q)_i
    double entropy  # that and mu H(q)
    double gap  # <p, L q> less the least


# Write a strategy into p to begin with: start, or the uniform one where start is none.
cdef void begin_row(const double* start, Py_ssize_t options, double* p) noexcept nogil
# Write the best reply q to p at scores f, and what the two secure; reward (k) is overwritten.
cdef void certify_row(
    Loss loss, const double* f, double mu, const double* p, double* reward, double* q, void* room, Certificate* found
) noexcept nogil
