"""Checks of arrays by the buffer protocol: dtype, shape, layout, leave to write, and ranges of indices.

Each refusal is a ValueError that names the argument, or a TypeError where it is no array at all.
"""

from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_STRIDES,
    PyBuffer_IsContiguous,
    PyBuffer_Release,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)

cdef double _nothing = 0.0  # what the address of an empty array points to
cdef tuple _NAMES = ("float64", "float32", "intp", "int32", "bool")


cdef int _kind(const Py_buffer* view) noexcept:
    """The kind of a buffer's entries, -1 for any other."""
    cdef char letter = view.format[0] if view.format != NULL else c"B"
    if view.format != NULL and view.format[0] != 0 and view.format[1] != 0:
        return -1  # a structure, or another byte order
    if letter == c"d":
        return DOUBLE
    if letter == c"f":
        return SINGLE
    if letter in (c"l", c"q", c"n", c"i"):
        if view.itemsize == sizeof(Py_ssize_t):
            return INDEX
        return NARROW if view.itemsize == sizeof(int) else -1
    return MARK if letter in (c"?", c"B") and view.itemsize == 1 else -1


cdef int _take(object array, str name, Py_buffer* view) except -1:
    if not PyObject_CheckBuffer(array):
        raise TypeError(f"{name} must be an array; got {type(array).__name__}")
    try:
        PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_STRIDES)
    except (BufferError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    return 0


cdef Py_ssize_t extent(object array, str name, Py_ssize_t axis) except -1:
    cdef Py_buffer view
    cdef Py_ssize_t found
    _take(array, name, &view)
    found = view.shape[axis] if axis < view.ndim else -1
    PyBuffer_Release(&view)
    if found < 0:
        raise ValueError(f"{name} must have at least {axis + 1} dimensions")
    return found


cdef int _either(object array, str name, int first, int second) except -1:
    """Whether an array is of the second kind and not of the first."""
    cdef Py_buffer view
    cdef int kind
    _take(array, name, &view)
    kind = _kind(&view)
    PyBuffer_Release(&view)
    if kind != first and kind != second:
        raise ValueError(f"{name} must be of dtype {_NAMES[first]} or {_NAMES[second]}; got {_dtype(array)}")
    return kind == second


cdef bint is_single(object array, str name) except -1:
    return _either(array, name, DOUBLE, SINGLE)


cdef bint is_narrow(object array, str name) except -1:
    return _either(array, name, INDEX, NARROW)


def _dtype(array):
    return getattr(array, "dtype", type(array).__name__)


def _wrong(str name, int kind, tuple shape, bint write, array):
    """The error for an array that is not what was asked for."""
    sizes = ", ".join("n" if size < 0 else str(size) for size in shape) + ("," if len(shape) == 1 else "")
    what = "writable, C-contiguous" if write else "C-contiguous"
    flags = getattr(array, "flags", None)
    got = f"{_dtype(array)} of shape {getattr(array, 'shape', '?')}"
    if flags is not None and not flags.c_contiguous:
        got += ", not contiguous"
    if flags is not None and not flags.aligned:
        got += ", not aligned"
    if write and flags is not None and not flags.writeable:
        got += ", read-only"
    return ValueError(f"{name} must be a {what} array of {_NAMES[kind]} and shape ({sizes}); got {got}")


cdef void* _address(object array, str name, int kind, tuple shape, bint write) except NULL:
    cdef Py_buffer view
    cdef Py_ssize_t axis, size
    cdef void* found
    cdef bint fits
    _take(array, name, &view)
    found = view.buf
    fits = (
        view.ndim == len(shape)
        and _kind(&view) == <int> kind
        and not (write and view.readonly)
        and PyBuffer_IsContiguous(&view, c"C")
        and (<size_t> found) % <size_t> view.itemsize == 0
    )
    if fits:
        for axis in range(view.ndim):
            size = shape[axis]
            fits = fits and (size < 0 or view.shape[axis] == size)
    PyBuffer_Release(&view)
    if not fits:
        raise _wrong(name, kind, shape, write, array)
    return found if found != NULL else &_nothing


cdef const void* vector(object array, str name, Kind kind, Py_ssize_t n) except NULL:
    return _address(array, name, kind, (n,), False)


cdef const void* matrix(object array, str name, Kind kind, Py_ssize_t n, Py_ssize_t m) except NULL:
    return _address(array, name, kind, (n, m), False)


cdef const void* cube(object array, str name, Kind kind, Py_ssize_t n, Py_ssize_t m, Py_ssize_t k) except NULL:
    return _address(array, name, kind, (n, m, k), False)


cdef const void* rows_apart(
    object array, str name, Kind kind, Py_ssize_t n, Py_ssize_t m, Py_ssize_t* apart
) except NULL:
    cdef Py_buffer view
    cdef void* found
    cdef bint fits
    _take(array, name, &view)
    found = view.buf
    fits = (
        view.ndim == 2
        and _kind(&view) == <int> kind
        and (n < 0 or view.shape[0] == n)
        and (m < 0 or view.shape[1] == m)
        and (view.shape[1] < 2 or view.strides[1] == view.itemsize)
        and view.strides[0] >= 0
        and view.strides[0] % view.itemsize == 0
        and (<size_t> found) % <size_t> view.itemsize == 0
    )
    if fits:
        apart[0] = view.strides[0] // view.itemsize
    PyBuffer_Release(&view)
    if not fits:
        raise _wrong(name, kind, (n, m), False, array)
    return found if found != NULL else &_nothing


cdef void* vector_out(object array, str name, Kind kind, Py_ssize_t n) except NULL:
    return _address(array, name, kind, (n,), True)


cdef void* matrix_out(object array, str name, Kind kind, Py_ssize_t n, Py_ssize_t m) except NULL:
    return _address(array, name, kind, (n, m), True)


cdef void* cube_out(object array, str name, Kind kind, Py_ssize_t n, Py_ssize_t m, Py_ssize_t k) except NULL:
    return _address(array, name, kind, (n, m, k), True)


ctypedef fused integer:
    Py_ssize_t
    int


cdef bint _inside(const integer* x, Py_ssize_t n, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint fits = True
    for i in range(n):
        fits &= (x[i] >= 0) & (x[i] < stop)
    return fits


cdef bint _rises(const integer* x, Py_ssize_t n, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint fits = x[0] == 0 and x[n] == stop
    for i in range(n):
        fits &= x[i] <= x[i + 1]
    return fits


cdef int within(const Py_ssize_t* x, Py_ssize_t n, Py_ssize_t stop, str name) except -1:
    if not _inside(x, n, stop):
        raise ValueError(f"{name} must hold indices 0..{stop - 1}")
    return 0


cdef int within_narrow(const int* x, Py_ssize_t n, Py_ssize_t stop, str name) except -1:
    if not _inside(x, n, stop):
        raise ValueError(f"{name} must hold indices 0..{stop - 1}")
    return 0


cdef int rising(const Py_ssize_t* x, Py_ssize_t n, Py_ssize_t stop, str name) except -1:
    if not _rises(x, n, stop):
        raise ValueError(f"{name} must rise from 0 to {stop}")
    return 0


cdef int rising_narrow(const int* x, Py_ssize_t n, Py_ssize_t stop, str name) except -1:
    if not _rises(x, n, stop):
        raise ValueError(f"{name} must rise from 0 to {stop}")
    return 0
