"""The CUDA kernels of :mod:`nashlearn.torch.nvrtc` on the host: compiled as C++, their threads played by fibres."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nashlearn.torch import nvrtc

__all__ = ["COMPILER", "HostKernel", "needs_compiler"]

COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler that could play the device's part")
_HERE = Path(__file__).parent / "host"


@cache
def _library(source: str, name: str, constants: tuple) -> ctypes.CDLL:
    folder = Path(tempfile.mkdtemp(prefix="nashlearn-cuda-"))
    code, library = folder / "kernel.cpp", folder / "kernel.so"
    defines = "".join(f"#define {name} {value}\n" for name, value in constants)
    code.write_text(
        f'#include "device.hpp"\n{defines}#include "{source}"\n'
        f'extern "C" bool launch(unsigned blocks, unsigned threads, size_t shared, void** values, unsigned seed) {{\n'
        f"    return emulator::launch({name}, blocks, threads, shared, values, seed);\n}}\n"
    )
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-ffp-contract=off", "-Wno-unknown-pragmas", "-U_FORTIFY_SOURCE"]
    command = [COMPILER, *flags, f"-I{_HERE}", f"-I{nvrtc._FOLDER}", str(code), "-o", str(library)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    found = ctypes.CDLL(str(library))
    found.launch.restype = ctypes.c_bool
    shutil.rmtree(folder)
    return found


class HostKernel(nvrtc.Kernel):
    """A kernel that runs on tensors in main memory."""

    seed = 0

    def __call__(self, blocks: int, threads: int, *arguments: Any, shared: int | None = None) -> None:
        """Run all blocks one after the other."""
        values = [nvrtc._argument(value) for value in arguments]
        places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        run = _library(self.source, self.name, self.constants).launch
        room = self.shared if shared is None else shared
        sizes = ctypes.c_uint(blocks), ctypes.c_uint(threads), ctypes.c_size_t(room)
        assert run(*sizes, places, self.seed), f"{self.name} wrote beyond its {room} bytes of shared memory"
