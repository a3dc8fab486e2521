"""Compressed labels: a model for very many labels in little memory."""
