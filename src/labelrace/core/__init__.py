"""What knows arrays only: encoder, decoder, thresholds, drift, missing labels and the protocol of an algorithm."""
