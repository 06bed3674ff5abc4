"""The papers' own training algorithms, small and slow: oracles for tests, and the constraint counts of Table 1."""

from reproduce.references.constraint_generation import Generated, constraint_generation, gram_features
from reproduce.references.pegasos import kernel_pegasos
from reproduce.references.subgradient import stochastic_subgradient

__all__ = ["Generated", "constraint_generation", "gram_features", "kernel_pegasos", "stochastic_subgradient"]
