"""Methods without compression, to compare with: one learner a label, chains of them, and constants."""
