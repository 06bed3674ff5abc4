"""Train in a process that is killed at random times, resume, and compare: ``kill_loop.py ROUTE KILLS FOLDER``.

Each attempt is a fork of this process, so that libraries are loaded and kernels compiled once. After each kill the
file under the checkpoint's name must be absent or whole. Prints what was seen as a line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sturdy_cases import chains, rows

from nashlearn import NashClassifier, NashTagger
from nashlearn.training import checkpoint

TRAININGS = {
    "rows": (NashClassifier("absolute", alpha=1e-6, tol=1e-7, random_state=0), lambda: rows(30000, 40, 6)),
    "kernel": (NashClassifier(kernel="rbf", alpha=1e-5, tol=1e-3, random_state=0), lambda: rows(2000, 5, 3)),
    "chains": (NashTagger(alpha=1e-6, tol=1e-5, max_iter=1000), lambda: chains(1000)),
}

MOST = 10  # times as many kills as were asked for, until a training was resumed


def attempt(model, data, seconds: float, result: Path) -> bool:
    """Train in a fork that is killed after some seconds; whether it came to its end before."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                model.fit(*data)
            result.write_text(json.dumps([model.objective_, model.dual_gap_]))
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (status := os.waitpid(child, os.WNOHANG))[0]:
            if status[1] != 0:
                raise SystemExit(f"a resumed training failed with status {status[1]}")
            return True
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def main(route: str, kills: int, folder: Path) -> None:
    estimator, make = TRAININGS[route]
    data = make()
    whole = clone(estimator).fit(*data)
    began = time.monotonic()
    clone(estimator).fit(*data)
    length = time.monotonic() - began
    checkpoint._SECONDS, checkpoint._SHARE = 0.0, np.inf  # so that many kills fall into the writing of one
    path, result = folder / "state", folder / "result"
    model = clone(estimator).set_params(checkpoint=path)
    seen = {"kills": 0, "unreadable": 0, "half_written_aside": 0, "resumed": 0, "finished": 0}
    difference = 0.0
    while True:
        # Few kills may all come before the first checkpoint: then there are more.
        lacking = seen["kills"] < kills or not (seen["resumed"] or seen["kills"] >= MOST * kills)
        if not lacking and seen["finished"]:
            break
        patience = random.uniform(0.0, 0.7 * length) if lacking else np.inf
        seen["resumed"] += path.exists()
        if attempt(model, data, patience, result):
            objective, gap = json.loads(result.read_text())
            difference = max(difference, abs(objective / whole.objective_ - 1.0))
            assert gap <= estimator.tol
            path.unlink()
            seen["finished"] += 1
            continue
        seen["kills"] += 1
        seen["half_written_aside"] += (folder / ".state.partial").exists()
        if path.exists():
            try:
                with np.load(path, allow_pickle=False) as file:
                    for name in file.files:
                        file[name]
            except Exception as error:
                seen["unreadable"] += 1
                print(f"unreadable: {error}", file=sys.stderr)
    print(json.dumps(seen | {"largest_difference": difference, "tol": estimator.tol, "seconds": length}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
