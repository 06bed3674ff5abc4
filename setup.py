"""The compiled kernels: each module of ``src/nashlearn/kernels`` for each level of the processor.

Cython writes C once; the compiler makes one library of it for each level, in the folder of that name, and
``nashlearn.kernels`` chooses a folder at import. What is compiled is kept in ``build/kernels`` under the name of
everything that it was made from, so that only modules that changed are compiled again.

Variables: NASHLEARN_SANITIZE=1 makes the level ``sanitized`` alone, with bounds checks, AddressSanitizer and UBSan;
NASHLEARN_ABI3=1 makes libraries that any later Python can load.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
ROOM = Path("src/nashlearn/kernels")
SANITIZE = os.environ.get("NASHLEARN_SANITIZE", "0") not in ("", "0")
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
ABI3 = os.environ.get("NASHLEARN_ABI3", "0") not in ("", "0") and not FREE_THREADED
WINDOWS = os.name == "nt"
X86 = sysconfig.get_platform().endswith(("x86_64", "amd64"))  # not universal2, whose other half is ARM

# NaN and infinity keep their meaning, and nothing is reordered but what the headers mark with `omp simd`: at scores
# of 1e8 a threshold that is added before a largest score is taken off costs eight digits. gcc 12 leaves MMX registers
# in use without `emms`, after which the x87 unit of other libraries returns NaN.
STRICT = ["-O3", "-g0", "-DNDEBUG", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fopenmp-simd"]
STRICT += ["-ffp-contract=off"]
CONTRACTED = ["-ffp-contract=fast"]
REORDERED = ["-fassociative-math", "-ffp-contract=fast"]
OWN_FLAGS = {"rows": REORDERED, "dense_rows": REORDERED, "csr": REORDERED, "forest": CONTRACTED}
BASELINE = ["cpu"]  # modules that run before a level is chosen

SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
CHECKED = {"initializedcheck": True, "nonecheck": True}
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": True,  # of Python's lists and tuples: kernels have none, entries are handed any
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "freethreading_compatible": True,
    "auto_pickle": False,  # it would let Python change the sizes of what was made
    **(CHECKED if SANITIZE else {}),
}


def levels() -> dict[str, list[str]]:
    """Folders of libraries, each with the flags for the processors that it is for."""
    if SANITIZE:
        return {"sanitized": SANITIZED}
    if not X86:
        return {"default": []}
    if WINDOWS:
        return {"v2": [], "v3": ["/arch:AVX2"]}
    return {level: [*machine(f"x86-64-{level}"), "-mno-mmx"] for level in ("v2", "v3")}


def machine(name: str) -> list[str]:
    """The flag for a kind of processor; Zig spells names otherwise, and takes the one at hand where there is none."""
    if not X86 or WINDOWS:
        return []
    return [f"-march={name.replace('-', '_') if 'ziglang' in os.environ.get('CC', '') else name}"]


def flags(module: str, own: list[str]) -> list[str]:
    """What the compiler is told for a module at a level with flags of its own."""
    if WINDOWS:
        return ["/O2", "/DNDEBUG", *own]
    return [*STRICT, *own, *OWN_FLAGS.get(module, [])]


def extensions() -> list[Extension]:
    """One for each module and level, of C that Cython has written or found up to date."""
    import Cython
    from Cython.Build import cythonize

    folders = levels()
    sources = sorted(ROOM.glob("*.pyx"))
    kept = Path("build") / f"cython-{Cython.__version__}{'-sanitized' if SANITIZE else ''}"
    written = cythonize(
        [Extension(f"nashlearn.kernels.{path.stem}", [str(path)]) for path in sources],
        compiler_directives=DIRECTIVES,
        include_path=["src"],
        build_dir=str(kept),
        nthreads=0 if WINDOWS else jobs(),
        quiet=True,
    )
    # Cython copies headers there, where the compiler would find them before those of ROOM, be they of today or not.
    for copy in kept.rglob("*.h"):
        copy.unlink()
    made = []
    for module in written:
        name = module.name.rpartition(".")[2]
        for level, own in [("", machine("x86-64"))] if name in BASELINE else folders.items():
            if level:  # setuptools looks for the folder of a checkout that it installs in place
                (ROOT / ROOM / level).mkdir(exist_ok=True)
            made.append(
                Extension(
                    ".".join(part for part in ("nashlearn.kernels", level, name) if part),
                    module.sources,
                    include_dirs=[str(ROOM)],
                    depends=headers(Path(module.sources[0])),
                    define_macros=[("Py_LIMITED_API", "0x030B0000")] if ABI3 else [],
                    extra_compile_args=flags(name, own),
                    extra_link_args=links(level),
                    py_limited_api=ABI3,
                )
            )
    return made


def links(level: str) -> list[str]:
    """What the linker is told for a level; a module without one is loaded by every process."""
    if level == "sanitized":
        return ["-fsanitize=address,undefined", "-lm"]
    return [] if WINDOWS else ["-s", "-lm"] if sys.platform == "linux" else ["-lm"]


def headers(source: Path) -> list[str]:
    """The library's own headers that a C file includes, and those that they include."""
    found: dict[str, None] = {}
    waiting = [source]
    while waiting:
        for name in re.findall(r'^\s*#\s*include "(\w+\.h)"', waiting.pop().read_text(encoding="utf-8"), re.M):
            path = ROOM / name
            if path.exists() and str(path) not in found:
                found[str(path)] = None
                waiting.append(path)
    return sorted(found)


def jobs() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def borrow_compiler() -> None:
    """Use the compiler of the package ziglang, for which the build backend has asked, where there is no other."""
    sys.path.insert(0, str(ROOT / "build_tools"))
    from backend import has_compiler

    if not has_compiler():
        zig = f"{sys.executable} -m ziglang cc -fno-sanitize=undefined"
        os.environ.update(CC=zig, LDSHARED=f"{zig} -shared")


class BuildKernels(build_ext):
    """Compile in parallel, and only what is not kept from before."""

    def build_extensions(self) -> None:
        """All libraries, as many at a time as there are cores."""
        self.check_extensions_list(self.extensions)
        with ThreadPoolExecutor(self.parallel or jobs()) as pool:
            for done in [pool.submit(self.build_extension, one) for one in self.extensions]:
                done.result()

    def build_extension(self, ext: Extension) -> None:
        """One library, from what is kept if it was made from the same."""
        target = Path(self.get_ext_fullpath(ext.name))
        key = self._key(ext)
        kept = Path("build") / "kernels" / key / target.name
        if not kept.exists():
            room = kept.parent / "objects"
            objects = self.compiler.compile(
                ext.sources,
                output_dir=str(room),
                macros=ext.define_macros,
                include_dirs=ext.include_dirs,
                extra_postargs=ext.extra_compile_args,
            )
            fresh = room / target.name
            self.compiler.link_shared_object(
                objects,
                str(fresh),
                libraries=self.get_libraries(ext),
                extra_postargs=ext.extra_link_args,
                export_symbols=self.get_export_symbols(ext),
            )
            fresh.replace(kept)
            shutil.rmtree(room, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (target.exists() and target.read_bytes() == kept.read_bytes()):
            passing = target.with_name(f"{target.name}.new")
            shutil.copyfile(kept, passing)
            passing.replace(target)  # a process that has the old one loaded keeps it

    def _key(self, ext: Extension) -> str:
        """A name for all that a library is made from: C, headers, flags, compiler and Python."""
        told = (ext.name, ext.extra_compile_args, ext.extra_link_args, ext.define_macros, sys.version, sys.platform)
        compiler = getattr(self.compiler, "compiler_so", self.compiler.compiler_type)
        digest = hashlib.sha256(repr((told, compiler)).encode())
        for path in (*ext.sources, *ext.depends):
            digest.update(Path(path).read_bytes())
        return digest.hexdigest()[:24]


def sweep() -> None:
    """Remove what an earlier build has left: libraries and files whose source is gone would be packed with the rest."""
    for folder in Path("build").glob("lib*"):
        shutil.rmtree(folder)
    modules = {path.stem for path in ROOM.glob("*.pyx")}
    for library in (*ROOM.glob("**/*.so"), *ROOM.glob("**/*.pyd")):
        if library.name.partition(".")[0] not in modules:
            library.unlink()


if __name__ == "__main__":
    os.chdir(ROOT)
    sweep()
    borrow_compiler()
    setup(
        ext_modules=extensions(),
        cmdclass={"build_ext": BuildKernels},
        options={"bdist_wheel": {"py_limited_api": "cp311"}} if ABI3 else {},
    )
