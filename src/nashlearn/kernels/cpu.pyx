"""What the processor can do, asked before any other kernel is loaded."""

cdef extern from "cpu.h":
    int cpu_runs_v3()


def runs_v3():
    """Whether this processor and its system run code for x86-64-v3 (AVX2, FMA and BMI2 among others)."""
    return cpu_runs_v3() != 0
