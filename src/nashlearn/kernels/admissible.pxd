"""Which pairs some matching uses, and which columns' sums follow from the others."""

from nashlearn.kernels.assignment cimport Sides

# Bytes of room that the function below needs.
cdef size_t admissible_room(const Sides* sides) noexcept nogil
# Mark in keep (N1, N2) the pairs that some matching uses, in free (columns) the columns that are not redundant. column
# is any feasible matching.
cdef void admissible_pairs(
    const Sides* sides, const double* scores, const Py_ssize_t* column, unsigned char* keep, unsigned char* free,
    void* room
) noexcept nogil
