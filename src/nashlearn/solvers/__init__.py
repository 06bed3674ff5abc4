"""Solvers that know no output structure: double oracle, interior points, core simplex, proximal steps, threads."""
