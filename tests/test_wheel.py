"""What `make wheel` asks of the files of a release; that the wheel works alone is tried there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPEC = importlib.util.spec_from_file_location("check_wheel", ROOT / "build_tools" / "check_wheel.py")
check_wheel = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_wheel)
ROOM = "nashlearn/kernels"


def wheel() -> list[str]:
    modules = [name.partition(".")[0] for name in check_wheel.sources(".pyx")]
    libraries = [f"{ROOM}/{level}/{name}.abi3.so" for level in ("v2", "v3") for name in modules if name != "cpu"]
    own = [f"{ROOM}/{name}" for name in check_wheel.sources(".pxd", ".h", ".py")]
    return [*own, f"{ROOM}/cpu.abi3.so", *libraries, "nashlearn/report/assets/report.html"]


def sdist() -> list[str]:
    own = [f"nashlearn-1/src/{ROOM}/{name}" for name in check_wheel.sources(".pyx", ".pxd", ".h", ".py")]
    return [*own, "nashlearn-1/setup.py"]


def test_a_release_that_holds_everything():
    assert check_wheel.wheel_faults(wheel()) == []
    assert check_wheel.sdist_faults(sdist()) == []


@pytest.mark.parametrize(
    ("less", "more", "fault"),
    [
        ("loss.pxd", None, "loss.pxd is not shipped"),
        ("simd.h", None, "simd.h is not shipped"),
        ("v3/zero_one.abi3.so", None, "v3/zero_one is not compiled"),
        (None, f"{ROOM}/loss.c", "loss.c is left over"),
        (None, f"{ROOM}/loss.pyx", "loss.pyx is left over"),
        (None, f"{ROOM}/v2/gone.abi3.so", "v2/gone has no source"),
        (None, f"{ROOM}/sanitized/loss.abi3.so", "got ['sanitized', 'v2', 'v3']"),
    ],
)
def test_faults_of_a_wheel(less, more, fault):
    names = [name for name in wheel() if not (less and name.endswith(f"/{less}"))] + ([more] if more else [])
    assert any(fault in found for found in check_wheel.wheel_faults(names))


def test_faults_of_a_source_distribution():
    less = [name for name in sdist() if not name.endswith("/loss.pyx")]
    assert check_wheel.sdist_faults(less) == ["loss.pyx is not shipped"]
    found = check_wheel.sdist_faults([*sdist(), f"nashlearn-1/src/{ROOM}/v2/loss.abi3.so"])
    assert len(found) == 1 and "left over" in found[0]
