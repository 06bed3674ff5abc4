"""Make each mutant and run its tests: ``python -m tests.mutants [-j 2] [NAME...]``.

The repository is copied once, and the named tests must pass there. Each mutant is a copy of that copy by hard links, in
which one file is replaced; where it is compiled, what depends on it is built again, the rest is kept. The working tree
is only read.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from .listing import ROOT, Mutant, complaints, mutants
from .plugin import ELSEWHERE

_NEEDED = ("src", "tests", "pyproject.toml", "setup.py", "build_tools")
_KEPT = ("cython-*", "kernels")  # of the folder build: what Cython and the compiler have made
_OPTIONS = ("-q", "-p", "no:cacheprovider", "--hypothesis-seed=0")
_PASSED, _FAILED = 0, 1  # pytest's exit codes


class Verdict(NamedTuple):
    """What became of a mutant: killed, killed (time), survived or an error; by which test, and in how many seconds."""

    mutant: Mutant
    outcome: str
    by: str
    seconds: float


def run_tests(copy: Path, tests: list[str], limit: float | None) -> tuple[int | None, str]:
    """Exit code and output of the tests on the library in ``copy``; None where the time is over."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "tests.mutants.plugin", *_OPTIONS, *tests],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the processes that tests have started
        return None, process.communicate()[0]
    return process.returncode, output


def build(copy: Path) -> str:
    """Compile what has changed in ``copy``; what the compiler says where it fails.

    Nothing is written into files that are there, which may be links: Cython and setup.py replace or remove them.
    """
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode else ""


def copied(target: Path) -> Path:
    """A copy of what tests need, with the times of files, so that what was compiled is still good if it was."""
    kept = [path.relative_to(ROOT) for pattern in _KEPT for path in (ROOT / "build").glob(pattern)]
    for name in (*map(Path, _NEEDED), *kept):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("*.pyc", "*.tmp.*"))
        else:
            shutil.copy2(ROOT / name, target / name)
    return target


def unmutated(copy: Path, chosen: list[Mutant], jobs: int) -> bool:
    """Whether the named tests pass on the library as it is; prints what they say where they do not."""
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    files = sorted({test.partition("::")[0] for test in tests})
    parts = [[test for test in tests if files.index(test.partition("::")[0]) % jobs == i] for i in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda part: run_tests(copy, part, None), filter(None, parts)))
    for code, output in results:
        if code != _PASSED:
            print(output)
    return all(code == _PASSED for code, _ in results)


def stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """When each file below ``folder`` was written, and its size."""
    found = ((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in found}


def judged(mutant: Mutant, pristine: Path, limit: float) -> Verdict:
    """Make a mutant, run its tests, and throw it away; an error where it has changed what all mutants share."""
    before = stamps(pristine)
    verdict = _judged(mutant, pristine, limit)
    written = [str(path.relative_to(pristine)) for path, stamp in stamps(pristine).items() if before.get(path) != stamp]
    return verdict._replace(outcome="error", by=f"a mutant has written into {written}") if written else verdict


def _judged(mutant: Mutant, pristine: Path, limit: float) -> Verdict:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutant-", dir=pristine.parent) as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(pristine, copy, copy_function=os.link)
        text = mutant.changed(copy)
        mutant.source(copy).unlink()  # not written in place: it is a link
        mutant.source(copy).write_text(text, encoding="utf-8")
        if mutant.compiled and (complaint := build(copy)):
            return Verdict(mutant, "error", f"it does not compile:\n{complaint[-3000:]}", time.perf_counter() - began)
        code, output = run_tests(copy, ["-x", *mutant.tests], limit)
    seconds = time.perf_counter() - began
    if code is None:
        return Verdict(mutant, "killed (time)", f"no end in {limit:.0f} s", seconds)
    if code == _PASSED:
        return Verdict(mutant, "survived", "", seconds)
    failed = re.search(r"^FAILED (\S+)", output, re.MULTILINE)
    if code == _FAILED and failed:
        return Verdict(mutant, "killed", failed[1], seconds)
    reason = "it was not imported" if code == ELSEWHERE else f"pytest ended with {code}"
    return Verdict(mutant, "error", f"{reason}:\n{output[-3000:]}", seconds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Make mutants and run their tests.")
    parser.add_argument("names", nargs="*", help="mutants, by the beginning of their names; all by default")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for the tests of a mutant")
    arguments = parser.parse_args()
    chosen = [one for one in mutants() if not arguments.names or one.name.startswith(tuple(arguments.names))]
    wrong = list(complaints(chosen))
    if wrong or not chosen:
        print("\n".join(wrong) or f"no mutant has a name that begins with one of {arguments.names}")
        return 1
    began = time.perf_counter()
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="nashlearn-mutants-") as folder:
        pristine = copied(Path(folder) / "pristine")
        if complaint := build(pristine):
            print(complaint)
            return 1
        if not unmutated(pristine, chosen, arguments.jobs):
            print("these tests fail without any mutation: they cannot kill anything")
            return 1
        print(f"all tests pass without mutations ({time.perf_counter() - began:.0f} s)", flush=True)
        with ThreadPoolExecutor(arguments.jobs) as pool:
            waiting = [pool.submit(judged, mutant, pristine, arguments.limit) for mutant in chosen]
            for found in as_completed(waiting):
                verdicts.append(found.result())
                mutant, outcome, by, seconds = verdicts[-1]
                print(f"{mutant.name:42} {outcome:13} {seconds:6.1f} s  {by}", flush=True)
    alive = [verdict for verdict in verdicts if not verdict.outcome.startswith("killed")]
    for mutant, outcome, _, _ in alive:
        print(f"{outcome}: {mutant.name} ({mutant.file}): {mutant.breaks}")
    print(f"{len(verdicts) - len(alive)} killed, {len(alive)} survived, in {time.perf_counter() - began:.0f} s")
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main())
