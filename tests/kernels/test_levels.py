"""The levels of the processor: all give the same numbers but for rounding, and none leaves MMX registers in use."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nashlearn.kernels as kernels
from nashlearn.kernels.cpu import runs_v3

ROOM = Path(kernels.__file__).parent
MADE = sorted(kernels._levels() - {"sanitized"})
LIBRARIES = [path for level in ("", *MADE) for path in sorted((ROOM / level).glob("*.so"))]

# Values, risks and gaps, which are unique, of games of every kind at random scores, and objectives of small fits.
SCRIPT = """
import json, warnings
import numpy as np
import nashlearn.kernels
from small_models import KINDS
from nashlearn import games
from nashlearn.kernels.tempered import turn_rows
import sys

warnings.simplefilter("ignore")
rng = np.random.default_rng(7)
found = {"level": nashlearn.kernels.level}
for k in (2, 3, 13, 40, 90):
    costs = rng.random((k + 1, k))
    played = {
        "zero_one": games.zero_one(k),
        "weighted": games.zero_one(k, weights=rng.uniform(0.5, 2.0, k)),
        "absolute": games.absolute(k),
        "squared": games.squared(k),
        "cost": games.cost(costs),
        "abstain": games.abstain(k, 0.3),
    }
    for shift in (0.0, 1e8):
        scores = rng.normal(size=(6, k)) + shift
        for name, game in played.items():
            eq = game.solve(scores)
            assert eq.gap.max() <= 1e-7
            found[f"{name} {k} {shift:g}"] = (eq.value - shift).tolist()
            if shift == 0.0:
                for mu in (1e-2, 0.5, 30.0):
                    eq = game.solve(scores, smoothing=mu)
                    found[f"{name} {k} smoothed by {mu}"] = eq.value.tolist()
                    turned = mu * rng.normal(size=scores.shape)
                    turn_rows(game.params.compiled(), mu, eq.q, eq.p, turned)
                    found[f"{name} {k} turned at {mu}"] = turned.ravel().tolist()
                found[f"{name} {k} risk"] = game.risk(np.full((1, k), 1 / k)).tolist()
for make in KINDS.values():
    for seed in range(3):
        trial = make(np.random.default_rng(seed))
        trial.model.set_params(tol=1e-9, max_iter=2000)
        trial.model.fit(trial.X, trial.y, **trial.fit)
        if trial.model.dual_gap_ <= 1e-9:
            found[f"{trial.name} {seed}"] = [trial.model.objective_]
print(json.dumps(found))
"""


def run(level: str, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    tests = str(Path(__file__).parents[1])
    environment = {**os.environ, "NASHLEARN_CPU": level, "PYTHONPATH": os.pathsep.join([tests, str(ROOM.parents[1])])}
    return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)


def test_levels_agree():
    usable = [level for level in MADE if level != "v3" or runs_v3()]
    if len(usable) < 2:
        pytest.skip(f"this processor runs one level alone: {usable}")
    first, *others = (run(level) for level in usable)
    assert first.returncode == 0, first.stderr
    expected = json.loads(first.stdout)
    for level, other in zip(usable[1:], others, strict=True):
        assert other.returncode == 0, other.stderr
        found = json.loads(other.stdout)
        assert expected["level"] == usable[0] and found.pop("level") == level
        assert len(found) >= 60 and set(found) <= set(expected)
        for name, values in found.items():
            # Scores of 1e8 leave eight digits; fits end within their tolerance, not at a number.
            tol = 1e-7 if "1e+08" in name else 1e-13 if name.split()[1].isdigit() else 3e-9
            assert np.allclose(values, expected[name], rtol=tol, atol=tol), name


@pytest.mark.parametrize("wanted", ["v4", "avx2", "V3"])
def test_unknown_levels_are_refused(wanted):
    done = run(wanted, "import nashlearn.kernels")
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert re.fullmatch(rf"ImportError: NASHLEARN_CPU must be one of [\w, ]+; got '{wanted}'\.", last)
    assert all(level in last for level in MADE)


def test_the_level_in_use_is_the_one_that_was_asked_for():
    for level in MADE:
        if level != "v3" or runs_v3():
            done = run(level, "from nashlearn.kernels import level, loss; print(level, loss.__file__)")
            chosen, place = done.stdout.split()
            assert chosen == level == Path(place).parent.name


@pytest.mark.skipif(not LIBRARIES, reason="no libraries of this system's kind were built")
def test_no_mmx_register_is_used():
    """After such an instruction without `emms` the x87 unit of other libraries returns NaN."""
    if shutil.which("objdump") is None:
        pytest.skip("objdump is not installed")
    used = {}
    for path in LIBRARIES:
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True)
        assert "ret" in code.stdout
        if found := mmx(code.stdout):
            used[path.name] = found
    assert used == {}


def mmx(code: str) -> list[str]:
    """Lines of a disassembly, in either syntax, that use an MMX register."""
    return re.findall(r"^\s*\w+:\s.*(?:%|\b)mm[0-7]\b.*$", code, re.MULTILINE)[:5]


def test_the_scan_can_tell():
    assert mmx("   1b0f:\tmovq   %mm0,(%rax)\n") and mmx("   1b0f:\tmovq   QWORD PTR [rax],mm3\n")
    assert not mmx(
        "   1b0f:\tmovq   %xmm0,(%rax)\n 22: vmovdqu %ymm1,%ymm2\n 00 <comm0>:\n 3: vaddpd %zmm7,%zmm1,%zmm2\n"
    )
