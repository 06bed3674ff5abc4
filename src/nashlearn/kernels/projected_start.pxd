"""An equilibrium of complete matchings guessed from the projection of the scores."""

# Bytes of room that the function below needs.
cdef size_t start_room(Py_ssize_t n) noexcept nogil
# Write strategies x (2, n^2), p before q, and potentials of rows y (2, n) and of all columns but the last lam
# (2, n - 1); True where it is an equilibrium. The best assignment's potentials must have been taken off scores (n, n).
cdef bint projected_start(
    Py_ssize_t n, const double* scores, double* x, double* y, double* lam, void* room
) noexcept nogil
