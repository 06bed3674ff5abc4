"""The best assignment of rows to columns, with potentials that prove it."""

cdef struct Sides:  # a matrix of scores (N1, N2), of which the first rows and columns are to be matched
    Py_ssize_t N1, N2
    Py_ssize_t rows, columns  # all, or all but the last row (entering) and the last column (leaving)

# The sides of matrices (N1, N2), whose last row and column are for what stays alone where partial.
cdef inline Sides sides_of(Py_ssize_t N1, Py_ssize_t N2, bint partial) noexcept nogil:
    cdef Sides sides
    sides.N1, sides.N2, sides.rows, sides.columns = N1, N2, N1 - partial, N2 - partial
    return sides

# Bytes of room that the two functions below need.
cdef size_t assignment_room(const Sides* sides) noexcept nogil
# Write the column of each row to be matched, -1 for one that leaves, and potentials u (rows), v (columns) with
# u_i + v_j >= scores_ij, and with u_i and v_j at least the scores of leaving and entering, which are tight on what is
# chosen; False where nothing is feasible.
cdef bint best_matching(
    const Sides* sides, const double* scores, Py_ssize_t* column, double* u, double* v, void* room
) noexcept nogil
# The score of an assignment: that of its pairs, and in the partial case of what is left on either side.
cdef double matching_score(
    const Sides* sides, const double* scores, const Py_ssize_t* column, void* room
) noexcept nogil
# The sides of scores (b, N1, N2) that a Python entry was given; an error where they are none.
cdef int checked_sides(object scores, bint partial, Sides* sides) except -1
