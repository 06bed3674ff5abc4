"""What :mod:`benchmarks.compare` times: our side of every kind of row of the benchmarks, by public names only.

A job is made once, with its data, and then called again and again. Rows that take minutes are scaled down; sizes are
in the names. Both checkouts train the same objective: the exact game where defaults have come to differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from benchmarks import compare_data as drawn

__all__ = ["JOBS", "Job"]

Job = Callable[[], Any]
TAGGING = {"alpha": 1e-4, "smoothing": 0.5}


class Certified(NamedTuple):
    """What a fit ended at, in costs."""

    value: float
    gap: float


class Made(NamedTuple):
    """An estimator, and what its objective is multiplied by to be one in costs."""

    estimator: Any
    unit: float

    def fit(self, X: Any, y: Any) -> Certified:
        """Train it."""
        self.estimator.fit(X, y)
        return Certified(self.unit * self.estimator.objective_, self.estimator.dual_gap_)


def _smooths(made: Any) -> bool:
    """Whether an estimator or a loss has a smoothing in this checkout; else it plays the exact game."""
    return "smoothing" in signature(made).parameters


def _untempered(made: Any) -> dict[str, Any]:
    """What names the exact game."""
    return {"smoothing": 0.0} if _smooths(made) else {}


def _made(name: str, *loss: Any, alpha: float, smoothing: float = 0.0, largest: float = 1.0, **parameters: Any) -> Made:
    """An estimator whose objective is the same in both checkouts: that in costs, for ``alpha`` and ``smoothing``.

    Those that divide it by ``unit = largest (1 + smoothing)``, with the largest cost, have it at ``unit alpha``. They
    came with the smoothing of NashClassifier.
    """
    import nashlearn

    named = getattr(nashlearn, name)
    unit = largest * (1.0 + smoothing) if _smooths(nashlearn.NashClassifier) else 1.0
    if _smooths(named):
        parameters["smoothing"] = smoothing
    return Made(named(*loss, alpha=unit * alpha, **parameters), unit)


def _fit(name: str, data: Callable[[], tuple[Any, Any]], *loss: Any, **parameters: Any) -> Job:
    X, y = data()
    return lambda: _made(name, *loss, **parameters).fit(X, y)


def _zero_one(X: Any, y: Any, C: float, tol: float = 1e-3, **parameters: Any) -> Job:
    """A fit as the benchmarks of training do it."""
    from nashlearn import NashClassifier

    made = {"alpha": 1.0 / (len(y) * C), "tol": tol, "max_iter": 1_000_000, "random_state": 0, **parameters}
    made |= _untempered(NashClassifier)
    return lambda: NashClassifier("zero_one", **made).fit(X, y)


def _training(name: str, C: float, tol: float) -> Job:
    from benchmarks import datasets

    split = datasets.load(name)
    return _zero_one(split.X, split.y, C, tol)


def _growth(n: int = 10_000, d: int = 100, k: int = 10, C: float = 1.0) -> Job:
    from benchmarks import growth

    return _zero_one(*growth.data(n, d, k), C)


def _big(case: str) -> Job:
    """The fits whose memory is measured; of the sparse one a fifth of the rows."""
    from benchmarks import memory

    X, y, _ = memory._data(case)
    step = 5 if case == "sparse" else 1
    return _zero_one(X[::step], y[::step], 1.0)


def _digits(gamma: float, C: float, predicts: bool) -> Job:
    from nashlearn.datasets import load_multiclass

    data = load_multiclass("optdigits")
    X, y = data.data[: data.n_train] / 16.0, data.target[: data.n_train]
    fit = _zero_one(X, y, C, kernel="rbf", gamma=gamma)
    if not predicts:
        return fit
    model, asked = fit(), data.data[data.n_train :] / 16.0
    return lambda: model.predict(asked)


def _mnist(n: int) -> Job:
    from nashlearn.datasets import load_mnist

    data = load_mnist(n)
    return _zero_one(data.data, data.target, 5.0, kernel="rbf", gamma=0.02)


def _game(make: Callable[[Any], Any], shape: tuple[int, ...], does: str = "solve", **options: Any) -> Job:
    """A game, made from the games, on normal scores, as the benchmarks draw them."""
    from nashlearn import games

    scale = options.pop("scale", 1.0)
    game, scores = make(games), scale * np.random.default_rng(shape[1]).standard_normal(shape)
    return lambda: getattr(game, does)(scores, **options)


def _one_by_one(k: int) -> Job:
    from nashlearn import games

    game, scores = games.cost(drawn.costs(k)), np.random.default_rng(k).standard_normal((200, k))
    return lambda: [game.solve(f) for f in scores[:, None]][-1]


def _letters(n: int, does: str = "fit", **parameters: Any) -> Job:
    """Handwritten words; ``does`` may be another method, of a model that was trained a little."""
    from nashlearn import datasets

    words = datasets.load_ocr_letters()
    X, y = words.data[:n], words.target[:n]
    if does == "fit":
        return lambda: _made("NashTagger", **parameters).fit(X, y)
    made = _made("NashTagger", **TAGGING, max_iter=5, **parameters)
    made.fit(X, y)
    return lambda: getattr(made.estimator, does)(X)


def _chunks(n: int, **parameters: Any) -> Job:
    from nashlearn import datasets
    from nashlearn.tagging import TokenFeatures

    data = datasets.load_chunking("train")
    X, y = TokenFeatures(spelling=False).transform(data.data[:n]), data.target[:n]
    return lambda: _made("NashTagger", **parameters).fit(X, y)


def _treebank(n: int = 400, **parameters: Any) -> Job:
    """Hashed features of real sentences, a few passes over them."""
    from nashlearn import datasets, parsing

    sentences = [one for one in datasets.load_treebank("en_ewt-r2.3", "dev") if len(one) < 40][:n]
    X, y = parsing.HashedSentences(sentences), [one.heads for one in sentences]
    return lambda: parsing.text_parser(max_iter=3, random_state=0, **parameters).fit(X, y)


def _cluster(rows: int) -> Job:
    """Training on a Dask collection, in this process."""
    import dask
    import dask.array as da

    from nashlearn import NashClassifier

    X, y = drawn.rows(rows, 50, 5)
    X, y = da.from_array(X, chunks=(rows // 4, 50)), da.from_array(y, chunks=rows // 4)

    def fit() -> Any:
        with dask.config.set(scheduler="synchronous"):
            return NashClassifier(alpha=1e-3, tol=1e-2, random_state=0, **_untempered(NashClassifier)).fit(X, y)

    return fit


def _torch_loss(loss: Any, b: int, k: int, dtype: str = "float32") -> Job:
    """Loss and gradient on the processor."""
    import torch

    import nashlearn.torch as nt

    torch.set_num_threads(1)
    made = nt.NashLoss(loss, **_untempered(nt.NashLoss))
    x = torch.randn(b, k, generator=torch.Generator().manual_seed(b)).to(getattr(torch, dtype)).requires_grad_()
    y = torch.arange(b) % k
    return lambda: torch.autograd.grad(made(x, y), x)[0]


def _torch_chains(started: bool, tol: float) -> Job:
    import torch

    import nashlearn.torch as nt

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(30)
    loss, edge = nt.MarkovLoss("zero_one", 0.5, tol=tol), torch.empty(30, 30)
    edge = edge.uniform_(-0.1, 0.1, generator=generator) if started else edge.normal_(generator=generator)
    node = torch.randn(8, 100, 30, generator=generator).requires_grad_()
    y = torch.randint(0, 30, (8, 100), generator=generator)
    edge = edge.requires_grad_()
    return lambda: torch.autograd.grad(loss(node, edge, y), (node, edge))[0]


def _torch_head(b: int, d: int, k: int) -> Job:
    import torch

    import nashlearn.torch as nt

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(b)
    head, x = nt.NashHead(d, k, smoothing=0.0), torch.randn(b, d, generator=generator).requires_grad_()
    with torch.no_grad():
        head.weight.copy_(torch.randn(k, d, generator=generator) / d**0.5)
        head.bias.zero_()
    y = torch.arange(b) % k
    return lambda: torch.autograd.grad(head(x, y), (x, head.weight))[0]


def _of_losses() -> Iterator[tuple[str, Callable[[], Job]]]:
    made: dict[str, Callable[[Any, int], Any]] = {
        "zero_one": lambda games, k: games.zero_one(k),
        "absolute": lambda games, k: games.absolute(k),
        "squared": lambda games, k: games.squared(k),
        "abstain": lambda games, k: games.abstain(k, 0.3),
    }
    for k in (10, 100):
        for name, game in made.items():
            yield f"losses: {name}, k = {k}", partial(_game, partial(game, k=k), (200_000 // k, k))
    for k in (2, 3, 8, 12):
        yield f"losses: zero_one, k = {k}", partial(_game, partial(made["zero_one"], k=k), (200_000 // k, k))


def _of_costs() -> Iterator[tuple[str, Callable[[], Job]]]:
    for k, rows in ((5, 500), (10, 500), (30, 300), (100, 200)):
        yield f"costs: k = {k}", partial(_game, lambda games, k=k: games.cost(drawn.costs(k)), (rows, k))
        yield f"costs: k = {k}, row by row", partial(_one_by_one, k)


def _of_training() -> Iterator[tuple[str, Callable[[], Job]]]:
    for name in ("dense", "sparse", "digits", "mid", "noisy"):
        for C in (1.0, 100.0):
            for tol in (1e-3, 1e-6):
                yield f"training: {name}, C = {C:g}, tol = {tol:g}", partial(_training, name, C, tol)


def _of_kernels() -> Iterator[tuple[str, Callable[[], Job]]]:
    for gamma, C in ((0.03, 1.0), (0.03, 10.0), (0.03, 100.0), (0.1, 10.0)):
        for predicts in (False, True):
            what = "predict" if predicts else "fit"
            yield f"kernels: {what}, gamma = {gamma}, C = {C:g}", partial(_digits, gamma, C, predicts)
    yield "kernels: MNIST, 1,000 rows", partial(_mnist, 1000)


def _of_growth() -> Iterator[tuple[str, Callable[[], Job]]]:
    axes: dict[str, tuple[float, ...]] = {
        "n": (2_500, 5_000, 10_000, 20_000, 40_000),
        "d": (50, 200, 400),
        "k": (5, 20, 50, 100),
        "C": (0.01, 0.1, 10.0, 100.0),
    }
    for axis, sizes in axes.items():
        for size in sizes:
            yield f"growth: {axis} = {size:g}", partial(_growth, **{axis: size})  # type: ignore[arg-type]
    for case in ("dense", "sparse"):
        yield f"memory: {case}", partial(_big, case)


def _of_matching() -> Iterator[tuple[str, Callable[[], Job]]]:
    def game(n: int) -> Callable[[Any], Any]:
        return lambda games: games.matching(n)

    for n in (12, 18, 20, 34, 40, 100):
        count = max(2, min(20, 40_000 // n**2))
        yield f"matching: projection, n = {n}", partial(_game, game(n), (count, n, n), "project")
    for n in (10, 15, 20):
        yield f"matching: game, n = {n}", partial(_game, game(n), (8, n, n))
    for n in (50, 100, 200):
        yield f"matching: game, n = {n}", partial(_game, game(n), (4 if n < 100 else 2, n, n))
    for n in (10, 20, 50, 100, 200):
        shape = (4 if n < 100 else 2, n, n)
        yield f"matching: smoothed game, n = {n}", partial(_game, game(n), shape, smoothing=0.1)
        yield f"matching: assignment, n = {n}", partial(_game, game(n), shape, "argmax")
    yield "matching: projection, n = 200", partial(_game, game(200), (2, 200, 200), "project")


def _of_trees() -> Iterator[tuple[str, Callable[[], Job]]]:
    def game(n: int, single: bool) -> Callable[[Any], Any]:
        return lambda games: games.arborescence(n, single)

    for n in (10, 20, 40, 100):
        for single in (False, True):
            shape, roots = (20_000 if n <= 20 else 2000, n, n + 1), "one root" if single else "many roots"
            yield f"trees: best, {n} tokens, {roots}", partial(_game, game(n, single), shape, "argmax")
    for n in (10, 20, 40):
        for scale in (1.0, 5.0):
            made = partial(_game, game(n, True), (10, n, n + 1), "project", scale=scale)
            yield f"trees: projection, {n} tokens, scale {scale:g}", made
    for n in (5, 10, 20):
        for scale in (0.3, 1.0):
            made = partial(_game, game(n, True), (10, n, n + 1), scale=scale)
            yield f"trees: game, {n} tokens, scale {scale:g}", made


def _of_markov() -> Iterator[tuple[str, Callable[[], Job]]]:
    for smoothing in (0.5, 0.2, 0.1, 0.0):
        made = partial(_letters, 2000, smoothing=smoothing, alpha=1e-5, max_iter=20, tol=1e-9)
        yield f"markov: letters, 2,000 words, 20 iterations, smoothing {smoothing:g}", made
    for smoothing in (0.5, 0.2, 0.1, 0.0):
        made = partial(_chunks, 1500, smoothing=smoothing, alpha=1e-5, max_iter=10, tol=1e-9)
        yield f"markov: CoNLL-2000, 1,500 sentences, 10 iterations, smoothing {smoothing:g}", made
    yield "markov: predict, 2,000 words", partial(_letters, 2000, "predict")
    yield "markov: strategies, 1,000 words", partial(_letters, 1000, "strategy")


def _of_torch() -> Iterator[tuple[str, Callable[[], Job]]]:
    for b, k in ((2**14, 10), (2**11, 100), (2**8, 1000), (32, 32000)):
        for dtype in ("float32", "bfloat16"):
            yield f"torch_losses: zero_one, {b} × {k}, {dtype}", partial(_torch_loss, "zero_one", b, k, dtype)
    for name in ("absolute", "squared", "abstain"):
        yield f"torch_losses: {name}, {2**14} × 10", partial(_torch_loss, name, 2**14, 10)
    for b, k in ((4096, 10), (4096, 30), (1024, 64), (256, 200)):
        yield f"torch_costs: {b} × {k}, on the host", partial(_torch_loss, drawn.costs(k), b, k)
    for started, name in ((True, "±0.1"), (False, "N(0, 1)")):
        for tol in (1e-3, 1e-4):
            yield f"torch_chains: {name}, tol = {tol:g}", partial(_torch_chains, started, tol)
    yield "torch_head: 512 × 64 to 1,000, on the host", partial(_torch_head, 512, 64, 1000)


def _of_estimators() -> Iterator[tuple[str, Callable[[], Job]]]:
    rows, many, costs = partial(drawn.rows, 4000, 60, 8), partial(drawn.rows, 12_000, 60, 8), drawn.costs(8)
    seeded: dict[str, Any] = {"alpha": 1e-3, "random_state": 0}
    priced = {**seeded, "largest": float(costs.max())}
    yield "fit: costs, 4,000 × 60, 8 labels", partial(_fit, "NashClassifier", rows, costs, **priced)
    yield "fit: ordinal, 12,000 × 60, 8 grades", partial(_fit, "NashOrdinalClassifier", many, **seeded)
    yield "fit: abstaining, 4,000 × 60, 8 labels", partial(_fit, "NashAbstainer", rows, **seeded)
    yield "fit: tagger, 400 sequences", partial(_fit, "NashTagger", partial(drawn.sequences, 400), **TAGGING)
    exact = {"alpha": 1e-4, "smoothing": 0.0, "max_iter": 60}
    yield "fit: tagger, exact, 60 sequences", partial(_fit, "NashTagger", partial(drawn.sequences, 60), **exact)
    relaxed = {**TAGGING, "exact": False, "max_iter": 40}
    yield "fit: 60 grids of 8 × 8", partial(_fit, "NashMarkovNetwork", partial(drawn.grids, 60), **relaxed)
    yield "fit: matcher, 80 pairs of sets", partial(_fit, "NashMatcher", partial(drawn.pairs, 80), alpha=1e-2)
    yield "fit: parser, 80 sentences", partial(_fit, "NashParser", partial(drawn.trees, 80), alpha=1e-2)
    yield "fit: hashed parser, 400 sentences", _treebank
    yield "scale_out: 200,000 rows of a Dask collection", partial(_cluster, 200_000)


JOBS: dict[str, Callable[[], Job]] = {
    name: make
    for of in (
        *(_of_losses, _of_costs, _of_training, _of_kernels, _of_growth, _of_matching, _of_trees, _of_markov),
        *(_of_torch, _of_estimators),
    )
    for name, make in of()
}
