"""Reports in, canonical findings out."""
