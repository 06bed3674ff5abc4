"""Fuzzing of everything that reads files, by atheris, and of compiled functions: ``python -m fuzz``, ``make fuzz``."""
