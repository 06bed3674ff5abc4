"""setuptools as the build backend, and Zig's C compiler from PyPI where the machine has none."""

from __future__ import annotations

import os
import shlex
import shutil
import sysconfig
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

_ZIG = "ziglang>=0.13"


def has_compiler() -> bool:
    """Whether a C compiler is at hand: the one that CC names, Python's own, or one with a usual name."""
    if os.name == "nt":  # setuptools finds Microsoft's by the registry
        return True
    wanted = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return any(shutil.which(name) for name in (*shlex.split(wanted)[:1], "cc", "gcc", "clang"))


_EXTRA = [] if has_compiler() else [_ZIG]  # asked before setup.py runs, which borrows that compiler


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What a wheel is built with."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_EXTRA]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """What the checkout itself is built with."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_EXTRA]
