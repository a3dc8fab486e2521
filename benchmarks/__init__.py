"""Benchmarks of labelrace, which are not part of the package: ``python -m benchmarks``, from the repository's root."""
