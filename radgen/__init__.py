"""radgen: synthetic supervision for radiology NLP, with targets that can be inspected."""

__version__ = "0.1.0"
