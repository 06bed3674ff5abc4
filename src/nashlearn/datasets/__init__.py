"""Loaders of the papers' data. No data inside: files are read from :func:`data_home`."""

from nashlearn.datasets.home import data_home
from nashlearn.datasets.mnist import load_mnist
from nashlearn.datasets.tables import load_multiclass, load_ordinal, multiclass_names, ordinal_names

__all__ = ["data_home", "load_mnist", "load_multiclass", "load_ordinal", "multiclass_names", "ordinal_names"]
