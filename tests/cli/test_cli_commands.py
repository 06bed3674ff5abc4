"""Commands as they are made of tasks: every option has its help, and no task loses one that it had."""

from __future__ import annotations

import gzip

import pytest
import typer
from commands import answer, call, columns

from nashlearn.cli.app import app
from nashlearn.cli.options import Command
from nashlearn.cli.tables import Tables

SHARED = "data out alpha tune report test learning_curve tol max_iter max_time checkpoint seed json quiet"
OWN = {
    "": "target loss ordinal order kernel gamma degree smoothing decision folds categorical drop balanced format"
    " na said check drop_unlabelled",
    "tag": "loss smoothing recipe spelling gazetteer vectors tune_time folds jobs",
    "parse": "recipe vectors bits labels many_roots tune_time jobs",
    "track": "video on memory folds jobs",
}


def command(group: str, name: str):
    found = typer.main.get_command(app)
    for part in [*group.split(), name]:
        found = found.commands[part]
    return found


@pytest.mark.parametrize("group", OWN)
def test_options_of_every_task(group):
    train, predict, evaluate = (command(group, name) for name in ("train", "predict", "evaluate"))
    assert {one.name for one in train.params} == {*SHARED.split(), *OWN[group].split()}
    assert {"model", "data", "out", "json", "quiet"} <= {one.name for one in predict.params}
    assert {"model", "data", "report", "json", "quiet"} <= {one.name for one in evaluate.params}
    for one in (train, predict, evaluate):
        assert one.help and all(parameter.help for parameter in one.params)
        assert {"data"} < {parameter.name for parameter in one.params if parameter.required}


def test_options_that_a_task_does_not_have_are_refused():
    with pytest.raises(KeyError, match="colour"):
        Command("data out | colour").on(Tables, print)


def test_text_is_packed_where_the_name_says_so(tmp_path):
    """As input may be, so that what one command writes the next one reads."""
    path = columns(tmp_path)
    call("tag", "train", path, "-o", tmp_path / "m")
    call("tag", "predict", tmp_path / "m", path, "-o", tmp_path / "out.txt")
    call("tag", "predict", tmp_path / "m", path, "-o", tmp_path / "out.txt.gz")
    assert gzip.decompress((tmp_path / "out.txt.gz").read_bytes()) == (tmp_path / "out.txt").read_bytes()
    with_mark = "\ufeff" + path.read_text()
    assert answer("tag", "evaluate", tmp_path / "m", "-", stdin=with_mark)["accuracy"] == 1.0
