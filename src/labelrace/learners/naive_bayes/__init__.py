"""Naive Bayes for all pseudo labels at once."""
