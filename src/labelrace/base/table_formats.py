"""Suffixes of the files of tables, for whoever must know them before anything large is imported."""

WRITTEN = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx")
"""Those that tables with tags are written to."""

TABLES = (*WRITTEN, ".json", ".gz", ".bz2", ".zip")
"""Those by which a table is known: a tag is not called so."""
