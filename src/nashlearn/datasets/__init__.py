"""Loaders of the papers' data. No data inside: files are read from :func:`data_home`."""

from nashlearn.datasets.conllu import Sentence, load_treebank, parse_conllu, read_conllu, treebank_names, write_conllu
from nashlearn.datasets.files import Table, read_table
from nashlearn.datasets.home import data_home
from nashlearn.datasets.mnist import load_mnist
from nashlearn.datasets.mot import Boxes, load_tracking, read_mot, tracking_names, write_mot
from nashlearn.datasets.sequences import load_chunking, load_ocr_letters, load_sudoku, parse_columns, read_columns
from nashlearn.datasets.tables import load_multiclass, load_ordinal, multiclass_names, ordinal_names

__all__ = [
    "Boxes",
    "Sentence",
    "Table",
    "data_home",
    "load_chunking",
    "load_mnist",
    "load_multiclass",
    "load_ocr_letters",
    "load_ordinal",
    "load_sudoku",
    "load_tracking",
    "load_treebank",
    "multiclass_names",
    "ordinal_names",
    "parse_columns",
    "parse_conllu",
    "read_columns",
    "read_conllu",
    "read_mot",
    "read_table",
    "tracking_names",
    "treebank_names",
    "write_conllu",
    "write_mot",
]
