"""The paper's method: encoder, decoder, classifier."""
