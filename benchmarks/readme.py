"""``python -m benchmarks.readme`` puts the figures of stored results into the README and the pages that quote them."""

from __future__ import annotations

import sys

from benchmarks import quoted, quoted_commands, quoted_evidence, quoted_torch
from benchmarks.figures import Claim, Page

__all__ = ["PAGES"]


def _training() -> list[Claim]:
    words = "| {data}, {shape} | {C:g} | {{}} | {{}} | {{}} | {{}} | {{}} |"
    return [Claim(words.format(**r), lambda r=r: quoted.training_row(r)) for r in quoted.records("training")]  # type: ignore[misc]


def _logistic() -> list[Claim]:
    claims = [Claim("its own, loose tolerance: we take {} to {} times its time", quoted.logistic)]
    if quoted.logistic_has_equal_accuracy():
        words = "and {} to {} times the time in which it comes as close to its own optimum"
        claims.append(Claim(words, quoted.logistic_at_equal_accuracy))
    return claims


def _taggers() -> list[Claim]:
    first, second = "CoNLL-2000", "OCR letters"
    return [
        Claim(
            "has chunk F1 {} on CoNLL-2000 after {} CPU seconds ({} iterations, certified gap {} %); python-crfsuite, "
            "on the same features and until its own rule stops it, {} after {} ({} iterations). Of",
            lambda: quoted.tagger(first),
        ),
        Claim(
            "the letters of OCR words it has {} % after {} s ({} iterations, gap {} %), crfsuite {} % after {} ({} "
            "iterations). The",
            lambda: quoted.tagger(second),
        ),
        Claim(
            "After as many iterations as ours, crfsuite has {} after {} s and {} % after {} s; trained to its own "
            "default gap of 1 %, ours has {} after {} s ({} iterations) and {} % after {} s ({} iterations).",
            lambda: [*_pair(first, second, slice(2)), *_pair(first, second, slice(2, None))],
        ),
        Claim("one evaluation of ours takes {} and {} of the time of a crfsuite iteration", quoted.tagger_iterations),
    ]


def _pair(first: str, second: str, which: slice) -> list[str]:
    """Some of the figures of two sets, one set after the other."""
    return [*quoted.tagger_equal(first)[which], *quoted.tagger_equal(second)[which]]


def _papers() -> list[Claim]:
    rows = {
        "accuracy, zero-one, {} sets (Table II, linear)": ("table2_linear", "al01", "AL linear"),
        "accuracy, zero-one, {} sets (Table II, Gaussian)": ("table2_gaussian", "al01-rbf", "AL gaussian"),
        "mean absolute error, {} ordinal sets (Table IV), thresholds": ("table4", "ord-th", "AL^ord-th"),
        "the same {}, one vector per class": ("table4", "ord-mc", "AL^ord-mc"),
        "mean absolute error, {} ordinal sets (Table V), thresholds, Gaussian": ("table5", "ord-th-rbf", "AL^ord-th"),
        "loss with abstention at ½, {} sets (Table VI, linear)": ("table6_linear", "abstain", "AL linear"),
        "the same {}, Gaussian": ("table6_gaussian", "abstain-rbf", "AL gaussian"),
    }
    return [
        Claim(f"| {words} | {{}} | {{}} | {{}} |", lambda row=row: quoted.paper_row(*row))  # type: ignore[misc]
        for words, row in rows.items()
    ]


_MODELS = {
    "logistic regression, cheapest answer": "logistic + cheapest",
    "gradient boosting, cheapest answer": "boosting + cheapest",
    "the exact game, `smoothing=0`": "exact game",
    "logistic regression, class weights": "logistic, class weights",
}
_DEEP = (
    "next word, EWT",
    "MNIST",
    "MNIST, labels with noise: 20 %",
    "MNIST, 40 %",
    "MNIST, 60 %",
    "satellite images, a table",
)


def _evidence() -> list[Claim]:
    return [
        Claim("| **`NashClassifier(costs)`** | {} | {} | | |", lambda: quoted_evidence.costs_row("nashlearn")),
        *(
            Claim(f"| {words} | {{}} | {{}} | {{}}–{{}} | {{}} |", lambda own=own: quoted_evidence.costs_row(own))  # type: ignore[misc]
            for words, own in _MODELS.items()
        ),
        Claim("its log loss is {} times that of logistic regression", lambda: quoted_evidence.log_loss()[:1]),
        Claim("at smoothing 3 {} times", lambda: quoted_evidence.log_loss()[1:]),
        Claim(
            "takes {} to {} of the time of LogisticRegression at its default on five sets, and {} on features of",
            lambda: quoted_evidence.tempered_times("zero-one"),
        ),
        Claim("with a cost matrix {} to {}, and {} there", lambda: quoted_evidence.tempered_times("costs")),
        *(
            Claim(f"| {words} | {{}} | {{}} | {{}} | {{}} |", lambda row=row: quoted_evidence.deep_row(row))  # type: ignore[misc]
            for row, words in enumerate(_DEEP)
        ),
    ]


_STARTS = (
    ("zero-one", "rbf kernel", "parser, arcs"),
    ("absolute", "tagger", "parser, text"),
    ("squared", "network with cycles", "nashlearn train"),
    ("cost matrix", "matcher", "nashlearn tag train"),
    ("abstainer", "ordinal", "nashlearn parse train"),
)


def _starts() -> list[Claim]:
    rows = [
        Claim(
            "| " + " | ".join(f"{name} | {{}} ms" for name in names) + " |",
            lambda names=names: quoted.starts(names),  # type: ignore[misc]
        )
        for names in _STARTS
    ]
    return [
        *rows,
        Claim("`nashlearn explain-cost` takes {} ms more", lambda: quoted.starts(["nashlearn explain-cost"])),
        Claim("importing an estimator takes {} ms beyond scikit-learn", quoted.importing),
    ]


def _structures() -> list[Claim]:
    return [
        Claim("Matching games of {} to {} elements are solved exactly {} to {} times as fast", quoted.matching_games),
        Claim("take 1/{} of ADMM's time or less and at most 1/{} of POT's", quoted.matching_projections),
        Claim("Best trees of 20 tokens: {} to {} million a minute", quoted.best_trees),
        Claim(
            "has UAS {} and LAS {} without punctuation after {} CPU seconds on one core, at a certified gap of {} %; a "
            "structured SVM with the same features and passes has {} and {} after {} (",
            quoted.laptop_parser,
        ),
        *_taggers(),
        Claim("`parse` has UAS {} and LAS {} on EWT, at a certified gap of {} %, {} CPU", quoted_commands.treebank),
        Claim(
            "`tag` has phrase F1 {} on the Broad Twitter Corpus (python-crfsuite with its usual features {}) and {} on "
            "CoNLL-2000 ({}, a tie;",
            quoted_commands.entities,
        ),
        Claim("On {} real tables with disguised columns `train` is {} points below to {} above", quoted_commands.messy),
        Claim(
            "learns Sudoku from {} solved puzzles of handwritten digits: {} of 100 test puzzles wrong, and {} and {} "
            "where 10 and 20 %",
            quoted.sudoku,
        ),
        Claim("find horses {} to {} points", quoted.horses),
    ]


def _readme() -> list[Claim]:
    return [
        *_training(),
        Claim("we are {} to more than {} times as fast as LIBLINEAR", quoted.liblinear_where_many),
        Claim("on digits at C = 1, we take {} to {} of its time", quoted.liblinear_where_few),
        *_logistic(),
        Claim("Time grows like n^{}, k^{} and, where the examples are many, d^{}. A game", quoted.growth),
        Claim(
            "any cost matrix of ten labels takes {} µs in a batch; a warm HiGHS takes {} to {} times as long as we do "
            "at {} to {} labels",
            quoted.costs,
        ),
        Claim(
            "adds to the input at most {} times the memory of 3 n k doubles on two large sets, and a Newton matrix of "
            "at most {} MB",
            quoted.memory,
        ),
        *_structures(),
        Claim(
            "take {} to {} of the time of cross-entropy as CUDA graphs, and {} to {} of that of compiled "
            "cross-entropy. Called eagerly at 100 and 1,000 classes, where launches from Python count, {} to {} "
            "of that of eager",
            quoted_torch.cuda_losses,
        ),
        Claim(
            "takes {} to {} of pytorch-crf's time for forward and backward on an H200, and {} to {} on one core",
            quoted_torch.chains,
        ),
        Claim("reaches chunk F1 {} with it, {} with cross-entropy, {} with a CRF", quoted_torch.bilstm),
        Claim(
            "On Dask, {} × {} rows on {} workers of {} GB reach a certified gap of {} in {} passes with {} MB",
            quoted.dask,
        ),
        Claim("(`make reproduce`, {} splits,", lambda: [quoted.splits()]),
        Claim("it has {} here and {} in the thesis, but {} to {} in {} of {} cases", quoted.pyrimidines),
        *_papers(),
        Claim("where a missed tumour costs {} false alarms", lambda: [quoted.demo_price()]),
        Claim(
            "a patient costs {} with logistic regression that takes the answer cheapest under its probabilities, {} "
            "with `NashClassifier(costs)`, {} with class weights and {} with plain",
            lambda: [quoted.demo_costs()[i] for i in (1, 0, 2, 3)],
        ),
        Claim(
            "on {} digits it takes {} to {} times the time of SVC's one-vs-one, which stops at its own tolerance, and "
            "{} to {} times one-vs-rest, with fewer support vectors and predictions {} to {} times as fast; on 20,000 "
            "images of MNIST {} minutes and {} GB",
            quoted.kernels,
        ),
        Claim("are equally good on all {} pairs; ten frames apart each leads on {}.", quoted.videos),
        *_starts(),
        *_evidence(),
    ]


# Numbers that nobody measured: sizes, settings, names, versions, counts that the text itself shows.
_OTHERS = (
    r"Python ≥ 3\.11", r"float32", r"with 95 % confidence", r"BSD-3-Clause", r"NeurIPS 2016", r"thesis, 2019",
    r"## (?:Three commands|Ten lines per task)", r"a loss for three classes", r"on a 2-core AMD EPYC",
    r"[\d,]+ × [\d,]+, k = \d+ \| 10?0?\b", r"gap 1e-[36]", r"LIBLINEAR, 1e-[36]", r"C = 1\b", r"3 n k doubles",
    r"any cost matrix of ten labels", r"two large sets", r"trees of 20 tokens", r"F1", r"CoNLL-2000", r"H200",
    r"of 100 test puzzles", r"where 10 and 20 %", r"at 100 and 1,000 classes", r"at ½", r"default gap of 1 %",
    r"26 real sets", r"\b10:1\b", r"26 sets \| the 12 fresh", r"ten splits", r"on five sets", r"condition 1e5",
    r"gap of 1e-4", r"five seeds", r"95 % interval", r"label(?:s with)? noise: 20 %|MNIST, [46]0 %", r"twelve sets",
    r"at smoothing 3\b", r"`smoothing=0`", r"Top-1",
    r"\b1/", r"million a minute", r"it exceeds 1 and says nothing", r"on 20,000 images", r"ten frames apart",
)  # fmt: skip

_GPU = [
    Claim(
        "forward and backward took {} to {} of the time of cross-entropy from 32,000 classes on, and as CUDA graphs {} "
        "to {} of compiled cross-entropy",
        quoted_torch.tempered_losses,
    ),
    Claim(
        "A cost matrix of ten classes took {} µs a row on one thread of the host, forward and backward; the named "
        "losses took {} ns a row in their kernels.",
        quoted_torch.host_and_kernels,
    ),
    Claim(
        "one kernel does it, {} to {} times as fast as one thread of the host, and in {} to {} times the time of the "
        "zero-one loss",
        quoted_torch.costs_on_device,
    ),
    Claim(
        "of 20 elements, with gradients, took {} to {} ms there, {} to {} times as fast as 16 cores of the host, and "
        "one over trees of 32 tokens {} to {} ms, {} to {} times as fast.",
        quoted_torch.structures_on_device,
    ),
    Claim("or a million rows of ten, it takes {} to {} of the time of cross-entropy", quoted_torch.large_batches),
    Claim("scores on an H200 took {} to {} µs in kernels but {} to {} µs by the clock", quoted_torch.small_batches),
    Claim(
        "That is {} to {} of the time of cross-entropy, {} to {} with smoothing; an autograd function in Python that "
        "computes nothing takes {} to {} of it.",
        quoted_torch.small_batches_over_others,
    ),
    Claim("as graphs these sizes take {} to {} of the time of cross-entropy", quoted_torch.small_batches_as_graphs),
    Claim("spares no launch and took {} to {} µs", quoted_torch.small_batches_compiled),
]
_HEADS = [
    Claim(
        "the exact head takes {} to {} of the time with 131,072 and 262,144 classes and {} to {} with 32,000, at {} to "
        "{} of the extra memory; before training, when all classes are alike, {} to {} of the time",
        quoted_torch.heads,
    ),
    Claim(
        "The tempered head takes {} to {} of the time, before training {} to {}, at {} to {} of the memory; with "
        "131,072 classes and more it takes {} to {} where scores fall",
        quoted_torch.tempered_heads,
    ),
    Claim("cut-cross-entropy took {} to {} times as long as compiled cross-entropy", quoted_torch.other_heads),
]
_HEADS_OTHERS = (r"H200", r"bfloat16", r"131,072", r"262,144", r"with 32,000", r"probabilities are 0 then")
_LEARNED = [
    Claim(
        "the tempered head gains {} ± {} points after equal steps and {} ± {} after equal time, a tie; the exact one",
        quoted_torch.tempered_words,
    ),
    Claim("loses {} and {} points", quoted_torch.exact_words),
    Claim(
        "the tempered head gains {} ± {} and {} ± {}, and the exact one learns nothing", quoted_torch.tempered_pictures
    ),
    Claim(
        "the exact head took {} of the time of compiled cross-entropy and the tempered one {} of it",
        quoted_torch.trained_heads,
    ),
    Claim(
        "the matching game finds {} % of the objects again, the distance of the true pairs {} %, and the distance of "
        "pairs that the Hungarian method chooses {} %",
        quoted_torch.objects,
    ),
    Claim(
        "the tree game attaches {} % of the words rightly and cross-entropy over heads {} %",
        quoted_torch.heads_of_words,
    ),
]
_LEARNED_OTHERS = (
    r"Top-1", r"95 % intervals", r"five seeds", r"16,654", r"10,000", r"500 steps", r"131,072", r"three seeds",
    r"300 steps", r"640", r"ten epochs", r"six settings",
)  # fmt: skip
_GPU_OTHERS = (
    r"from 32,000 classes on", r"float64", r"1,024 games over matchings of 20", r"16 cores", r"one over trees of 32",
    r"cost matrix of ten classes", r"one thread", r"Up to 64 classes and options one kernel",
    r"more than 64 classes", r"zero-one loss",
    r"is three launches", r"tens of thousands of classes",
    r"a million rows of ten", r"131,072 × 100 and 32,768 × 1000", r"H200",
)  # fmt: skip

PAGES = [
    Page("README.md", _readme(), _OTHERS),
    Page("docs/pytorch.md", _GPU, _GPU_OTHERS, start="A cost matrix of ten classes took", end="All figures:"),
    Page(
        "docs/pytorch.md",
        _HEADS,
        _HEADS_OTHERS,
        start="On an H200, forward and backward in bfloat16",
        end="All figures:",
    ),
    Page("docs/pytorch.md", _LEARNED, _LEARNED_OTHERS, start="**Do they learn?**", end="Confirm this on"),
]


def main() -> None:
    """Rewrite the figures, and say what has to be done by hand."""
    for page in PAGES:
        print(f"{page.path}: {page.rewrite()} figures changed")
    left = [fault for page in PAGES for fault in (*page.wrong(), *page.unregistered())]
    if left:
        sys.exit("\n".join(left))


if __name__ == "__main__":
    main()
