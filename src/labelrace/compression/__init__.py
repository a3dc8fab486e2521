"""Labels to pseudo labels and back: encoder, decoder and the algorithm that joins them to the learners."""
