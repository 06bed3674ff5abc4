from nashlearn.kernels.loss cimport Loss

cdef class ZeroOne(Loss):
    pass
