"""Calls with one argument spoilt: ``python entry_abuse.py CALLS --seed 0 --count 2000``.

Each call starts from one that the library has made, or, where it makes none, from arguments that bear the same names
elsewhere. Then a shape, a type, a layout or some entries change. What may happen: an error that names a parameter, or
an answer. An answer must not depend on what lies around the arrays or in fresh scratch, must leave the surroundings
alone, and must be that of the plain call where only the layout differs. A call is made twice, each time with other
bytes in those places.

The number of the call is written to standard error before it is made, so that whoever started the process can say which
one has killed it: ``--only NUMBER`` makes that one again.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from entry_calls import Call, Made, entries, heard, rebuilt

_PATTERNS = (b"\x00\x00\x00\x00\x80", b"\x7f\xf8\xff\x01\xa5")  # around arrays: tiny numbers, or NaN and huge indices
_PAD = 64
_LIBC, _M_PERTURB = ctypes.CDLL(None) if os.name == "posix" else None, -6
_LAYOUTS = ("strided", "reversed", "fortran", "read-only", "misaligned")
_CONVERSIONS = ("cannot convert float", "truth value of an", "to unpack")  # by Python and NumPy, which know no names
_PATIENCE = ("max_iter", "rounds", "budget", "sweeps", "passes")  # whoever asks for a million rounds gets them
_SECONDS = 60  # for one call
_ODD = (
    None,
    0,
    1,
    -1,
    2**31,
    2**62,
    2**63 - 1,
    2**70,
    0.5,
    np.nan,
    np.inf,
    -np.inf,
    1e300,
    "text",
    b"bytes",
    [],
    [1.0],
    object(),
)
_DTYPES = ("f8", "f4", "i8", "i4", "u8", "u1", "?", "c16", ">f8", ">i8", "O", "U3", "M8[s]")


class Laid(NamedTuple):
    """An array, and how it lies in memory."""

    array: np.ndarray
    layout: str


class WrongCallError(AssertionError):
    """A call that did what no call may do."""


# ------------------------------------------------------------------------------------------------ arrays between guards


class _Guarded:
    """Arguments made of fresh memory, whose surroundings are known."""

    def __init__(self, pattern: bytes) -> None:
        self.pattern = pattern
        self.buffers: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # bytes, which are an array's, at the start

    def _bytes(self, n: int) -> np.ndarray:
        return np.frombuffer((self.pattern * (n // len(self.pattern) + 1))[:n], np.uint8).copy()

    def array(self, array: np.ndarray, layout: str) -> np.ndarray:
        if array.dtype.hasobject:
            return array.copy()
        shape, step = array.shape, array.itemsize
        stretch = 2 if layout in ("strided", "reversed") else 1
        whole = (*shape[:-1], shape[-1] * stretch) if shape else ()
        size = int(np.prod(whole)) * step
        buffer = self._bytes(size + 2 * _PAD + 64)
        begin = _PAD + (-(buffer.ctypes.data + _PAD)) % 64 + (layout == "misaligned")
        inner = buffer[begin : begin + size].view(array.dtype).reshape(whole, order="F" if layout == "fortran" else "C")
        if stretch == 2 and shape:
            inner = inner[..., ::2] if layout == "strided" else inner[..., ::-2]
        inner[...] = array
        owned = np.zeros(buffer.size, bool)
        mask = owned[begin : begin + size]
        if stretch == 2 and shape:
            every = np.zeros(whole, bool)
            (every[..., ::2] if layout == "strided" else every[..., ::-2])[...] = True
            mask[:] = np.repeat(every.ravel(), step)
        elif layout != "read-only":
            mask[:] = True
        self.buffers.append((buffer, owned, buffer.copy()))
        if layout == "read-only":
            inner.flags.writeable = False
        return inner

    def built(self, value: Any) -> Any:
        if isinstance(value, Laid):
            return self.array(value.array, value.layout)
        if isinstance(value, np.ndarray):
            return self.array(value, "plain")
        if isinstance(value, Made):
            return entries()[value.entry].function(*map(self.built, value.arguments))
        if isinstance(value, tuple | list):
            return rebuilt(value, map(self.built, value))
        return value

    def check(self) -> None:
        for buffer, owned, before in self.buffers:
            if (buffer != before)[~owned].any():
                raise WrongCallError("it wrote outside an array, or into one that is read-only")


def _outcome(name: str, arguments: tuple[Any, ...], pattern: bytes) -> tuple[Any, ...]:
    """What a call answers, or its error: something that can be compared with that of another one."""
    guarded = _Guarded(pattern)
    _perturb(pattern[-1])
    try:
        given = tuple(map(guarded.built, arguments))
        returned = _called(name, given)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        guarded.check()
        return type(error).__name__, str(error)
    guarded.check()
    return "answer", _comparable(returned), _bytes_of(given)


def _perturb(byte: int) -> None:
    """Let malloc fill what it hands out, so that an answer that reads scratch before writing it shows itself."""
    if sys.platform == "linux" and hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(_M_PERTURB, byte ^ 0xFF)


def _called(name: str, given: tuple[Any, ...]) -> Any:
    owner, _, method = name.rpartition(".")
    if owner not in entries():
        return entries()[name].function(*given)
    # Cython does not look at what a method is called on; another class may have a method of that name.
    if not (given and isinstance(given[0], entries()[owner].function)):
        raise TypeError(f"self must be a {owner}")
    return getattr(given[0], method)(*given[1:])


def _bytes_of(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The content of all arrays among the arguments."""
    found: list[Any] = []
    for value in given:
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            found.append(value.tobytes())
        elif isinstance(value, tuple | list) and not isinstance(value, Made):
            found += _bytes_of(tuple(value))
    return tuple(found)


def _comparable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, tuple | list):
        return tuple(map(_comparable, value))
    if isinstance(value, float | np.floating):
        return np.float64(value).tobytes()
    return value if value is None or isinstance(value, int | str | bool | np.integer) else type(value).__name__


# ------------------------------------------------------------------------------------------------------------- spoiling


def _other_shape(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    kind = rng.integers(6)
    if kind == 0 or array.ndim == 0:
        return array[None]
    if kind == 1:
        return array.reshape(-1)
    if kind == 2:
        return np.ascontiguousarray(array.T)
    axis = rng.integers(array.ndim)
    if kind == 3:
        return np.ascontiguousarray(np.take(array, np.arange(array.shape[axis] - 1), axis=axis))
    if kind == 4:
        return np.ascontiguousarray(np.take(array, [], axis=axis))
    return np.concatenate([array, np.take(array, [0] if array.shape[axis] else [], axis=axis)], axis=axis)


def _other_entries(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    array = array.copy()
    if array.size and array.dtype.kind in "iuf":
        odd = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e8, 1e300, 1e-300)
        if array.dtype.kind != "f":
            least, most = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
            odd = (max(-1, least), 0, 1, min(array.size, most), min(int(array.max()) + 1, most), most, least)
        with np.errstate(all="ignore"):
            chosen = rng.random(array.shape) < rng.choice([0.1, 0.5, 1.0])
            chosen.flat[rng.integers(array.size)] = True
            array[chosen] = rng.choice(np.array(odd, dtype=array.dtype), size=int(chosen.sum()))
    elif array.dtype.kind == "b":
        array[...] = rng.random(array.shape) < 0.5
    return array


def _other_type(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"), contextlib.suppress(TypeError, ValueError):
        return array.astype(rng.choice([name for name in _DTYPES if np.dtype(name) != array.dtype]))
    return array.astype("O")


def _spoilt(rng: np.random.Generator, value: Any, pool: list[Any]) -> tuple[Any, bool]:
    """Another value for an argument, and whether it differs in its layout alone."""
    if isinstance(value, np.ndarray) and rng.random() < 0.85:
        kind = rng.integers(4)
        if kind == 0:
            return Laid(value, str(rng.choice(_LAYOUTS))), True
        return (_other_shape, _other_entries, _other_type)[kind - 1](rng, value), False
    if isinstance(value, Made) and rng.random() < 0.6 and value.arguments:
        inner = list(value.arguments)
        i = rng.integers(len(inner))
        inner[i], alone = _spoilt(rng, inner[i], pool)
        return Made(value.entry, tuple(inner)), alone
    if isinstance(value, tuple | list) and not isinstance(value, Made) and value and rng.random() < 0.8:
        parts = list(value)
        i = rng.integers(len(parts))
        parts[i], alone = _spoilt(rng, parts[i], pool)
        return rebuilt(value, parts), alone
    if isinstance(value, float) and rng.random() < 0.5:
        return float(rng.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-300, 1e300])), False
    if pool and rng.random() < 0.5:
        return pool[rng.integers(len(pool))], False
    return _ODD[rng.integers(len(_ODD))], False


class Batch:
    """Spoilt calls by number: the same number, seed and list of calls make the same call."""

    def __init__(self, calls: list[Call], seed: int) -> None:
        self.seed, self.calls = seed, calls
        self.known: dict[str, list[Call]] = {name: [] for name in entries()}
        self.by_name: dict[str, list[Any]] = {}
        self.pool: list[Any] = []
        for call in calls:
            self.known[call.entry].append(call)
            for parameter, value in zip(entries()[call.entry].parameters, call.arguments, strict=False):
                self.by_name.setdefault(parameter, []).append(value)
                self.pool.append(value)
        self.pool += [np.empty(0), np.empty((0, 3)), np.zeros((2, 2)), np.zeros(3, np.intp), np.zeros(3, bool)]
        self.names = sorted(entries())
        for name in self.names:
            if isinstance(entries()[name].function, type) and not entries()[name].parameters:
                self.pool.append(Made(name, ()))
        self.by_name["self"] = [value for value in self.pool if isinstance(value, Made)]

    def call(self, number: int) -> tuple[str, tuple[Any, ...], tuple[Any, ...] | None]:
        """The entry and arguments of a call, and the plain arguments where only the layout differs."""
        rng = np.random.default_rng([self.seed, number])
        name = self.names[number % len(self.names)]
        known, parameters = self.known[name], entries()[name].parameters
        if known:
            plain = known[rng.integers(len(known))].arguments
        else:
            choices = [self.by_name.get(parameter, self.pool) for parameter in parameters]
            plain = tuple(values[rng.integers(len(values))] for values in choices)
        given, alone = list(plain), True
        for i in rng.permutation(len(given))[: rng.choice([1, 1, 1, 2])]:
            given[i], only = _spoilt(rng, given[i], self.pool)
            if i < len(parameters) and parameters[i] in _PATIENCE and isinstance(given[i], int | float):
                given[i] = min(given[i], 50)
            alone = alone and only
        if rng.random() < 0.02:
            given, alone = given[:-1], False
        return name, tuple(given), plain if alone and known else None


def judge(name: str, arguments: tuple[Any, ...], plain: tuple[Any, ...] | None) -> str:
    """Make a call twice; "answer" or the kind of its error. Raises :class:`WrongCallError`."""
    first, second = (_outcome(name, arguments, pattern) for pattern in _PATTERNS)
    if first != second:
        raise WrongCallError(
            f"the answer depends on what lies around the arrays: {str(first)[:300]} or {str(second)[:300]}"
        )
    spoken = first[0] == "ValueError" and not any(words in first[1] for words in _CONVERSIONS)
    if spoken and not _named(name, arguments, first[1]):
        raise WrongCallError(f"the error names no parameter: {first[1]}")
    if first[0] == "answer" and plain is not None and first != _outcome(name, plain, _PATTERNS[0]):
        raise WrongCallError("the answer depends on the layout of an array")
    return str(first[0])


def _named(name: str, arguments: tuple[Any, ...], message: str) -> bool:
    """Whether an error names a parameter, of the entry or of what made an argument or its parts, or a field of one."""
    names, values = list(entries()[name].parameters), list(arguments)
    for value in values:
        names += entries()[value.entry].parameters if isinstance(value, Made) else getattr(value, "_fields", ())
        values += value.arguments if isinstance(value, Made) else ()  # made of others, which the loop comes to
    return any(one in message for one in names)


def replay(calls: list[Call]) -> None:
    """Make the calls that were heard again: the same bytes must come out."""
    for call in calls:
        wanted = "answer", _comparable(call.returned)
        found = _outcome(call.entry, call.arguments, _PATTERNS[1])
        if isinstance(entries()[call.entry].function, type):
            ok = found[0] == "answer"
        else:
            ok = found == (*wanted, _bytes_of(call.after))
        if not ok:
            raise WrongCallError(f"{call.entry}: not the answer that it gave before: {str(found)[:300]}")


def _shown(value: Any) -> str:
    if isinstance(value, Laid):
        return f"{value.layout} {_shown(value.array)}"
    if isinstance(value, np.ndarray):
        entries_ = np.array2string(value, threshold=8, precision=4).replace("\n", "")
        return f"{value.dtype}{list(value.shape)} {entries_[:80]}"
    if isinstance(value, Made):
        return f"{value.entry}({', '.join(map(_shown, value.arguments))})"
    return repr(value)[:40]


def trouble(calls: Path, seed: int, count: int) -> str:
    """What goes wrong in a batch in its own process: nothing, or the calls that fail and the last before a crash."""
    command = [sys.executable, "-W", "ignore", __file__, str(calls), "--seed", str(seed), "--count", str(count)]
    done = subprocess.run(command, capture_output=True)
    if done.returncode == 0:
        return ""
    printed, errors = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
    last = re.findall(r"\rcall (\d+)", errors)[-1:]
    said = [line for line in re.sub(r"\rcall \d+", "", errors).splitlines() if line.strip()]
    wrong = [line for line in printed.splitlines() if "--only" in line]
    return "\n".join(
        [f"status {done.returncode}, seed {seed}, last call {''.join(last) or 'none'}", *wrong, *said[-30:]]
    )


def _limit_memory() -> None:
    """So that an absurd size is refused by malloc; the sanitizers reserve terabytes themselves."""
    if os.environ.get("NASHLEARN_CPU") != "sanitized" and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("calls", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    _limit_memory()
    calls = heard(given.calls)
    batch = Batch(calls, given.seed)
    if given.only is None and given.begin == 0:
        replay(calls)
    numbers = range(given.begin, given.begin + given.count) if given.only is None else [given.only]
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in batch.names}
    failures = 0
    for number in numbers:
        name, arguments, plain = batch.call(number)
        if given.only is not None:
            print(name, *map(_shown, arguments), sep="\n  ", flush=True)
        os.write(2, f"\rcall {number}".encode())
        faulthandler.dump_traceback_later(_SECONDS, exit=True)
        try:
            outcomes[name][judge(name, arguments, plain)] += 1
        except Exception as error:
            failures += 1
            print(f"{name}, seed {given.seed}, --only {number}: {type(error).__name__}: {error}", flush=True)
        faulthandler.cancel_dump_traceback_later()
    for name, found in outcomes.items():
        print(
            f"{name:28s} heard {len(batch.known[name]):2d}  " + "  ".join(f"{k} {n}" for k, n in sorted(found.items()))
        )
    return int(failures > 0)


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
