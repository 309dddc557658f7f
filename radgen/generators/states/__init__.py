"""Sentences by finding and state, and pairs and triplets of them (spec §11; MApLe, section 3.1)."""
