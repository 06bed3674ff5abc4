"""References and baselines that are whole loops: Cython files beside them, compiled when they are first asked for.

What is compiled is kept in ``build/references`` under the name of everything that it was made from. This takes Cython
and a C compiler, as an installation from the sources does.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

import nashlearn
from nashlearn.kernels import level

__all__ = ["load"]

ROOT = Path(__file__).resolve().parents[1]
KERNELS = Path(nashlearn.__file__).parent / "kernels"
# As the library's kernels, at the level in use.
_FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fopenmp-simd", "-ffp-contract=off"]
_FLAGS += [f"-march=x86-64-{level}", "-mno-mmx"] if level in ("v2", "v3") else []


@cache
def load(name: str, folder: str = "reproduce/references") -> ModuleType:
    """The module of ``<folder>/<name>.pyx``. Cost: some ten seconds for the first time, then nothing."""
    full = f"{folder.replace('/', '.')}.{name}"
    source = ROOT / folder / f"{name}.pyx"
    digest = hashlib.sha256(repr((sys.version, sys.platform, _FLAGS)).encode())
    for path in (source, *sorted(KERNELS.glob("*.pxd")), *sorted(KERNELS.glob("*.h"))):
        digest.update(path.read_bytes())
    target = ROOT / "build" / "references" / digest.hexdigest()[:24] / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not target.exists():
        _compile(full, source, target)
    spec = importlib.util.spec_from_file_location(full, target)
    if spec is None or spec.loader is None:
        raise ImportError(f"{target} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compile(name: str, source: Path, target: Path) -> None:
    """In a folder of its own, so that processes may do it at once: the last one's file stays."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as room:
        flags = [] if sys.platform == "win32" else _FLAGS
        made = cythonize(
            [Extension(name, [str(source)], include_dirs=[str(KERNELS)], extra_compile_args=flags)],
            include_path=[str(KERNELS.parents[1])],
            compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True},
            build_dir=room,
            quiet=True,
        )
        command = Distribution({"name": name, "ext_modules": made}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = room, room
        command.ensure_finalized()
        command.run()
        Path(command.get_ext_fullpath(name)).replace(target)
