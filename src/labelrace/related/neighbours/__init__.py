"""Nearest neighbours in windows of recent rows."""
