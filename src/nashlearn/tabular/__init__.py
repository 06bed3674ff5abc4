"""Tables for the classifiers, messy ones too: what each column holds is guessed, said, and done alike ever after.

from nashlearn import NashClassifier, datasets, tabular

features, target = datasets.read_table("wine.csv", target="quality")
model = tabular.table_pipeline(NashClassifier(), features)
tabular.fit_table(model, features, target.to_numpy())

Numbers are scaled, also those written as $32,500, 12 kg, 45 % or 1.234,5; categories become indicators, dates the time
elapsed and their parts, free text TF-IDF of its words; columns that name rows are left out.
:func:`guess_columns` says what is guessed and why; ``table_pipeline(..., kinds={"zip": "category"})`` overrules it.
"""

from nashlearn.tabular.columns import TableColumns
from nashlearn.tabular.dates import DateStyle
from nashlearn.tabular.entries import RowError
from nashlearn.tabular.guess import KINDS, Guess, column_kinds, guess_columns
from nashlearn.tabular.look import look_at
from nashlearn.tabular.numbers import NumberStyle
from nashlearn.tabular.pipeline import fit_table, pipeline_of, table_pipeline, table_schema
from nashlearn.tabular.words import WordFeatures

__all__ = [
    "KINDS",
    "DateStyle",
    "Guess",
    "NumberStyle",
    "RowError",
    "TableColumns",
    "WordFeatures",
    "column_kinds",
    "fit_table",
    "guess_columns",
    "look_at",
    "pipeline_of",
    "table_pipeline",
    "table_schema",
]
