"""How it is said: surface forms, sentence frames, and the realiser."""
