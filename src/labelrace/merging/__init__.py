"""Models that learned different rows, joined."""
