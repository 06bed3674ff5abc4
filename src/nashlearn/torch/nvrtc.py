"""CUDA C++ compiled when it is first needed, by the compiler (NVRTC) that comes with PyTorch, and kept in a cache.

Games whose rows branch, or whose players have more than a vector each, are no tiles of numbers as Triton wants them.
Their kernels are in the folder ``cuda``, in a subset of C++ that includes nothing but the headers there, so that
ordinary compilers take them too, as the tests do. A kernel is compiled for the device at hand and for its constants,
such as the number of classes; machine code is kept in the user's cache directory, where later processes find it.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from nashlearn.cache import user_cache

__all__ = ["Kernel", "Memory", "available", "memory"]

_FOLDER = Path(__file__).parent / "cuda"
_SHARED_LIMIT = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_MEMORY = 97, 81, 16  # CU_DEVICE_ATTRIBUTE_*: shared memory of a block and of a multiprocessor, and how many of these


class Memory(NamedTuple):
    """Shared memory of a device in bytes: what a block may have, what a multiprocessor has, and how many there are."""

    block: int
    multiprocessor: int
    multiprocessors: int


@cache
def _compiler() -> ctypes.CDLL | None:
    """NVRTC: on the loader's path, else among the packages beside PyTorch."""
    if not torch.version.cuda:
        return None
    major = torch.version.cuda.partition(".")[0]
    windows = sys.platform == "win32"
    name = f"nvrtc64_{major}0_0.dll" if windows else f"libnvrtc.so.{major}"
    own = Path(torch.__file__).parent
    beside = [own / "lib" / name, *sorted((own.parent / "nvidia").glob(f"*/lib/{name}"))]
    for place in (name, *map(str, beside)):
        with suppress(OSError):  # not there: the next place
            return ctypes.CDLL(place)
    return None


@cache
def _driver() -> ctypes.CDLL:
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    library.cuGetErrorString.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
    return library


@cache
def available(device_type: str) -> bool:
    """Whether kernels can be compiled for devices of this type."""
    return device_type == "cuda" and _compiler() is not None


@cache
def memory(device: torch.device) -> Memory:
    """How much shared memory kernels find on a CUDA device."""
    own, found = ctypes.c_int(), ctypes.c_int()
    index = torch.cuda.current_device() if device.index is None else device.index
    _called(_driver().cuDeviceGet(ctypes.byref(own), index), "finding the device")
    numbers = []
    for attribute in _MEMORY:
        _called(_driver().cuDeviceGetAttribute(ctypes.byref(found), attribute, own), "asking the device")
        numbers.append(found.value)
    return Memory(*numbers)


def _called(code: int, what: str) -> None:
    """Raise an error for a call of the driver that failed."""
    if code:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"CUDA: {what} failed: {(text.value or b'unknown error').decode()}")


def _compiled(source: str, constants: tuple[tuple[str, int], ...], architecture: str) -> bytes:
    """Machine code of a file, from the cache where it has been compiled before."""
    nvrtc = _compiler()
    assert nvrtc is not None
    version = (ctypes.c_int(), ctypes.c_int())
    nvrtc.nvrtcVersion(*map(ctypes.byref, version))
    text = (_FOLDER / source).read_bytes()
    headers = {path.name: path.read_bytes() for path in sorted(_FOLDER.glob("*.cuh"))}
    options = [f"--gpu-architecture={architecture}", "--std=c++17", *(f"-D{name}={value}" for name, value in constants)]
    key = hashlib.sha256(repr((text, headers, options, version[0].value, version[1].value)).encode()).hexdigest()
    kept = user_cache() / "cuda" / f"{Path(source).stem}-{key[:32]}.cubin"
    with suppress(OSError):  # not compiled yet
        return kept.read_bytes()
    code = machine_code(nvrtc, source, text, headers, options)
    with suppress(OSError):  # a cache that cannot be written costs time, nothing else
        _keep(kept, code)
    return code


def _keep(path: Path, code: bytes) -> None:
    """Write a file so that no reader ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(code)
    os.replace(name, path)


def machine_code(nvrtc: Any, name: str, text: bytes, headers: dict[str, bytes], options: list[str]) -> bytes:
    """Compile ``text`` by the library ``nvrtc``."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    many = len(headers)
    sources, names = (ctypes.c_char_p * many)(*headers.values()), (ctypes.c_char_p * many)(*map(str.encode, headers))
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name.encode(), many, sources, names):
        raise RuntimeError("NVRTC could not begin a programme")
    try:
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if nvrtc.nvrtcCompileProgram(program, len(options), words):
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise RuntimeError(f"NVRTC could not compile {name}:\n{log.value.decode()}")
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, code)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


class Kernel:
    """The function ``name`` of a file of the folder ``cuda``, with its constants, on whichever device is current.

    ``shared`` are the most bytes of dynamic shared memory that a block is ever given.
    """

    def __init__(self, source: str, name: str, shared: int = 0, **constants: int):
        self.source, self.name, self.shared = source, name, shared
        self.constants = tuple(sorted(constants.items()))
        self._functions: dict[int, ctypes.c_void_p] = {}

    def _load(self, device: int) -> ctypes.c_void_p:
        major, minor = torch.cuda.get_device_capability(device)
        code = _compiled(self.source, self.constants, f"sm_{major}{minor}")
        driver, module, function = _driver(), ctypes.c_void_p(), ctypes.c_void_p()
        _called(driver.cuModuleLoadData(ctypes.byref(module), code), f"loading {self.source}")
        _called(driver.cuModuleGetFunction(ctypes.byref(function), module, self.name.encode()), f"finding {self.name}")
        if self.shared > 48 * 1024:
            most = min(self.shared, memory(torch.device("cuda", device)).block)
            _called(driver.cuFuncSetAttribute(function, _SHARED_LIMIT, most), f"room for {self.name}")
        return function

    def __call__(self, blocks: int, threads: int, *arguments: Any, shared: int | None = None) -> None:
        """Launch on the current stream: tensors are passed as pointers, integers as long long, numbers as double.

        Each block is given ``shared`` bytes of dynamic shared memory, or as many as there may be.
        """
        device = torch.cuda.current_device()
        function = self._functions.get(device)
        if function is None:
            function = self._functions[device] = self._load(device)
        values = [_argument(value) for value in arguments]
        places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        stream = ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream)
        room = self.shared if shared is None else shared
        code = _driver().cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, room, stream, places, None)
        _called(code, f"launching {self.name}")


def _argument(value: Any) -> Any:
    if value is None:
        return ctypes.c_void_p()
    if isinstance(value, torch.Tensor):
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_longlong(value) if isinstance(value, int) else ctypes.c_double(value)
