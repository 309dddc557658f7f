"""What a sentence states of a finding, by the nearest codebook vectors of its states (spec §11; MApLe)."""
