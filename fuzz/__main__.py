"""``python -m fuzz [--seconds S] [TARGET ...]``: each target in a process of its own, all targets by default.

Inputs that fail are left in ``fuzz/failures``. Ends with status 1 where there are any. The target ``kernels`` calls the
compiled functions, as ``tests/kernels/entry_abuse.py`` says; it needs no atheris.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FAILURES = Path(__file__).parent / "failures"
KERNELS = Path(__file__).parents[1] / "tests" / "kernels"
READERS = ("conllu", "columns", "mot", "csv", "arff", "model", "checkpoint")
NAMES = (*READERS, "kernels")
_OPTIONS = ("-timeout=20", "-rss_limit_mb=4096", "-max_len=8192")
_INSTRUMENTED = ("nashlearn.datasets", "nashlearn.persistence", "nashlearn.training.checkpoint", "skops.io")


def _fuzz(name: str, seconds: int) -> None:
    """Run one target in this process; atheris ends it."""
    import atheris

    import nashlearn.estimators  # noqa: F401  compiled code must not be instrumented: it is imported before

    for module in [module for module in sys.modules if module.startswith(_INSTRUMENTED)]:
        del sys.modules[module]
    with atheris.instrument_imports(include=list(_INSTRUMENTED)):
        from fuzz.targets import TARGETS
    target = TARGETS[name]
    room = "/dev/shm" if os.path.isdir("/dev/shm") else None  # in memory, where there is such a place
    with tempfile.TemporaryDirectory(dir=room) as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for i, seed in enumerate(target.seeds()):
            (corpus / str(i)).write_bytes(seed)
        places = [f"-max_total_time={seconds}", f"-artifact_prefix={FAILURES}/{name}-", str(corpus)]
        atheris.Setup([sys.argv[0], *_OPTIONS, *places], lambda data: target.call(data, Path(folder)))
        atheris.Fuzz()


def _abuse(seconds: int) -> str:
    """Batches of spoilt calls of the compiled functions, each in a process of its own; what went wrong."""
    sys.path.insert(0, str(KERNELS))
    from entry_abuse import trouble

    began, batch, size = time.monotonic(), 0, 20_000
    with tempfile.TemporaryDirectory() as folder:
        calls = Path(folder) / "calls"
        subprocess.run([sys.executable, KERNELS / "entry_calls.py", calls], check=True)
        while batch == 0 or time.monotonic() - began < seconds:
            seed = random.SystemRandom().randrange(2**32)
            if wrong := trouble(calls, seed, size):
                shutil.copy(calls, FAILURES / "kernels-calls")
                again = f"python {KERNELS / 'entry_abuse.py'} {FAILURES / 'kernels-calls'} --seed {seed} --only NUMBER"
                return f"{wrong}\nagain: {again}"
            batch += 1
    print(f"{'kernels':12s} {batch * size:>9} calls in {time.monotonic() - began:.0f} seconds, no failure", flush=True)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=int, default=300, help="for each target (default: 300)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = given.targets or list(NAMES)
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        parser.error(f"no target is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    FAILURES.mkdir(exist_ok=True)
    if given.here:
        _fuzz(names[0], given.seconds)
    failed = []
    for name in names:
        if name == "kernels":
            if wrong := _abuse(given.seconds):
                failed.append(name)
                print(f"{name:12s} FAILED", wrong, sep="\n", flush=True)
            continue
        command = [sys.executable, "-W", "error", "-m", "fuzz", "--here", "--seconds", str(given.seconds), name]
        done = subprocess.run(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, errors="replace")
        ended = re.search(r"Done (\d+) runs in (\d+) second", done.stdout)
        if done.returncode == 0 and ended:
            print(f"{name:12s} {ended[1]:>9} inputs in {ended[2]} seconds, no failure", flush=True)
        else:
            failed.append(name)
            print(
                f"{name:12s} FAILED with status {done.returncode}",
                *done.stdout.splitlines()[-40:],
                sep="\n",
                flush=True,
            )
    print(f"{len(names) - len(failed)} of {len(names)} targets without failure")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
