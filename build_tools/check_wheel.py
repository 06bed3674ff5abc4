"""``python build_tools/check_wheel.py WHEEL [SDIST] [--fits NAME ...]``: what a release holds, and that it works alone.

The wheel is installed, with what it depends on, into an environment outside the checkout; there it is imported and fits
one estimator of each kind at each level of the processor, with no program on the PATH, a compiler least of all.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
ROOM = PurePosixPath("nashlearn/kernels")
FITS = ROOT / "benchmarks" / "first_fits.py"
LEVELS = ("v2", "v3", "default")
LEFTOVERS = (".c", ".cpp", ".html", ".o", ".obj", ".pyc", ".new")
LIBRARIES = (".so", ".pyd")


def sources(*endings: str) -> set[str]:
    """Names of the files of the kernels in the checkout with one of these endings."""
    folder = ROOT / "src" / ROOM
    return {path.name for ending in endings for path in folder.glob(f"*{ending}")}


def wheel_faults(names: list[str]) -> list[str]:
    """What is wrong with the files of a wheel."""
    paths = [PurePosixPath(name) for name in names]
    shipped = {path.name for path in paths if path.parent == ROOM}
    faults = [f"{name} is not shipped" for name in sorted(sources(".pxd", ".h") - shipped)]
    kernels = [path for path in paths if path.is_relative_to(ROOM)]
    faults += [f"{path} is left over" for path in kernels if path.suffix in (*LEFTOVERS, ".pyx")]
    modules = {name.partition(".")[0] for name in sources(".pyx")}
    made: dict[str, set[str]] = {}
    for path in kernels:
        if path.suffix in LIBRARIES:
            made.setdefault("" if path.parent == ROOM else path.parent.name, set()).add(path.name.partition(".")[0])
    base = made.pop("", set())
    if not made or not set(made) <= set(LEVELS):
        faults.append(f"levels of the processor must be among {LEVELS}; got {sorted(made)}")
    for level, found in made.items():
        faults += [f"{level}/{name} is not compiled" for name in sorted(modules - base - found)]
        faults += [f"{level}/{name} has no source" for name in sorted(found - modules)]
    return faults


def sdist_faults(names: list[str]) -> list[str]:
    """What is wrong with the files of a source distribution."""
    paths = [PurePosixPath(name) for name in names]
    shipped = {path.name for path in paths if path.parent.parts[-2:] == ROOM.parts}
    faults = [f"{name} is not shipped" for name in sorted(sources(".pyx", ".pxd", ".h") - shipped)]
    kernels = [path for path in paths if ROOM.name in path.parts]
    return faults + [f"{path} is left over" for path in kernels if path.suffix in (*LEFTOVERS, *LIBRARIES)]


def sizes(wheel: Path) -> str:
    """How large a wheel is, packed and installed, and how much of it each level takes."""
    of: Counter[str] = Counter()
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = PurePosixPath(entry.filename)
            of[path.parent.name if path.suffix in LIBRARIES else "other files"] += entry.file_size
    parts = ", ".join(f"{name} {size / 1e6:.2f}" for name, size in sorted(of.items()))
    return f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, installed {sum(of.values()) / 1e6:.2f} MB ({parts})"


def try_alone(wheel: Path, fits: list[str]) -> None:
    """Install a wheel into an empty environment and fit there."""
    with tempfile.TemporaryDirectory(prefix="nashlearn-wheel-") as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        python = str(home / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--only-binary", ":all:", str(wheel.resolve())], check=True, cwd=home)
        script = home / "fits.py"
        shutil.copyfile(FITS, script)
        (home / "empty").mkdir()
        kept = ("SYSTEMROOT", "TEMP", "TMP", "HOME", "USERPROFILE")
        bare = {name: os.environ[name] for name in kept if name in os.environ}
        bare |= {"PATH": str(home / "empty"), "OMP_NUM_THREADS": "1"}
        ask = "import nashlearn.kernels as k; print(k.level, *k._levels(), k.__file__)"
        told = subprocess.run(
            [python, "-I", "-c", ask], env=bare, cwd=home, check=True, stdout=subprocess.PIPE, text=True
        )
        chosen, *made, place = told.stdout.split()
        if not Path(place).resolve().is_relative_to(home.resolve()):
            raise SystemExit(f"the library was imported from {place}, not from the environment of its own")
        for level in sorted(made):
            if level == "v3" and chosen != "v3":
                print("v3: left out, this processor lacks it")
                continue
            print(f"{level}:", flush=True)
            subprocess.run([python, str(script), *fits], env={**bare, "NASHLEARN_CPU": level}, cwd=home, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("archives", nargs="+", type=Path, metavar="ARCHIVE", help="a wheel, and its sdist")
    parser.add_argument("--fits", nargs="*", default=[], metavar="NAME", help=f"some of {FITS.name}; all by default")
    given = parser.parse_args()
    faults = []
    for archive in given.archives:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:
                faults += wheel_faults(opened.namelist())
            print(sizes(archive), flush=True)
        else:
            with tarfile.open(archive) as opened_tar:
                faults += sdist_faults(opened_tar.getnames())
            print(f"{archive.name}: {archive.stat().st_size / 1e6:.2f} MB", flush=True)
    if faults:
        print(*faults, sep="\n")
        return 1
    for archive in given.archives:
        if "-abi3-" in archive.name:
            audit = [sys.executable, "-m", "abi3audit", "--strict", "--summary", str(archive)]
            if subprocess.run(audit).returncode:
                return 1
        if archive.suffix == ".whl":
            try_alone(archive, given.fits)
    return 0


if __name__ == "__main__":
    sys.exit(main())
