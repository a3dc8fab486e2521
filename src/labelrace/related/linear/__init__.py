"""Linear models for each label, by others' rules of learning."""
