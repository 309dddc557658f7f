"""``radgen evaluate`` and ``radgen compare``: how good an encoder is, for any sentence-transformers model."""
