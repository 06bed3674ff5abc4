"""Solvers that know no output structure: double oracle, matrix games, threads."""
