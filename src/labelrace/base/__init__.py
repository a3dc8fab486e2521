"""What every model is: the protocol of an algorithm, the estimator, validation of input, names, files of models."""
