"""From scores to label sets: histograms of scores, rules, probabilities, the monitored sample, drift."""
