"""The default model: a linear model for each label, by diagonal recursive least squares."""
