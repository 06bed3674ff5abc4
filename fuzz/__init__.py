"""Fuzzing of everything that reads files, by atheris: ``python -m fuzz`` or ``make fuzz``."""
