"""Stacked binary relevance: a second level of learners sees what the first predicts."""
