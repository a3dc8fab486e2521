"""The related work and the baselines: one method, one file."""
