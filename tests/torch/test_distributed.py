"""Two processes that share a batch reach the gradient of one."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import nashlearn.torch as nt  # noqa: E402


class _Linear(torch.nn.Linear):
    """A linear layer and its loss."""

    def forward(self, x, y):
        return nt.NashLoss()(super().forward(x), y)


MODELS = {
    "loss": lambda: _Linear(5, 3),
    "head": lambda: nt.NashHead(5, 3),
    "tempered head": lambda: nt.NashHead(5, 3, smoothing=0.3),
}


def _model(name):
    torch.manual_seed(0)
    return MODELS[name]()


def _batch():
    torch.manual_seed(1)
    return torch.randn(16, 5), torch.randint(0, 3, (16,))


def _worker(rank: int, file: str, name: str, answers) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(_model(name))
    x, y = _batch()
    model(x[rank::2], y[rank::2]).backward()
    answers[rank] = [p.grad.tolist() for p in model.module.parameters()]
    torch.distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_two_processes_give_the_gradient_of_one(name, tmp_path):
    context = torch.multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        answers = manager.dict()
        store = str(tmp_path / "store")
        workers = [context.Process(target=_worker, args=(rank, store, name, answers)) for rank in (0, 1)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(300)
            assert worker.exitcode == 0
        parts = dict(answers)
    model = _model(name)
    x, y = _batch()
    model(x, y).backward()
    for rank in (0, 1):
        for ours, p in zip(parts[rank], model.parameters(), strict=True):
            torch.testing.assert_close(torch.tensor(ours), p.grad)
