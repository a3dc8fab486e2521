"""From scores to probabilities and to label sets."""
