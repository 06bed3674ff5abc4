"""What every Python entry asks of its arrays before compiled code sees their addresses.

An address stays valid while the caller's argument refers to its array. A size of -1 stands for any.
"""

cdef enum Kind:
    DOUBLE  # float64
    SINGLE  # float32
    INDEX  # intp
    NARROW  # int32
    MARK  # bool, or uint8

# The size of an array along an axis.
cdef Py_ssize_t extent(object array, str name, Py_ssize_t axis) except -1
# Whether an array holds float32; float64 otherwise, and an error for all other types.
cdef bint is_single(object array, str name) except -1
# Whether an array holds int32; intp otherwise, and an error for all other types.
cdef bint is_narrow(object array, str name) except -1

# Addresses of contiguous arrays of the given kind and shape.
cdef const void* vector(object array, str name, Kind kind, Py_ssize_t n) except NULL
cdef const void* matrix(object array, str name, Kind kind, Py_ssize_t n, Py_ssize_t m) except NULL
cdef const void* cube(object array, str name, Kind kind, Py_ssize_t n, Py_ssize_t m, Py_ssize_t k) except NULL
# The address of a matrix whose rows are contiguous and lie ``apart`` entries from each other.
cdef const void* rows_apart(
    object array, str name, Kind kind, Py_ssize_t n, Py_ssize_t m, Py_ssize_t* apart
) except NULL
# The same as the first three, to be written to.
cdef void* vector_out(object array, str name, Kind kind, Py_ssize_t n) except NULL
cdef void* matrix_out(object array, str name, Kind kind, Py_ssize_t n, Py_ssize_t m) except NULL
cdef void* cube_out(object array, str name, Kind kind, Py_ssize_t n, Py_ssize_t m, Py_ssize_t k) except NULL

# Refuse indices outside 0 .. stop - 1.
cdef int within(const Py_ssize_t* x, Py_ssize_t n, Py_ssize_t stop, str name) except -1
cdef int within_narrow(const int* x, Py_ssize_t n, Py_ssize_t stop, str name) except -1
# Refuse bounds of consecutive parts that do not rise from 0 to stop; there are n + 1 of them.
cdef int rising(const Py_ssize_t* x, Py_ssize_t n, Py_ssize_t stop, str name) except -1
cdef int rising_narrow(const int* x, Py_ssize_t n, Py_ssize_t stop, str name) except -1
