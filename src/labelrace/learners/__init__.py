"""Banks: many online learners on the same features, one for each pseudo label, updated at once."""
