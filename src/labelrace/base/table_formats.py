"""Suffixes of the files of tables, for modules that must know them before anything large is imported."""

WRITTEN = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx")
"""Those that tables with tags are written to."""

TABLES = (*WRITTEN, ".json", ".ndjson", ".arrow", ".feather", ".xlsm", ".gz", ".bz2", ".zip")
"""Those by which a table is known: no tag ends in one."""
