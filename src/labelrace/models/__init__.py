"""One method, one file: the pure algorithm above, its scikit-learn class below."""
