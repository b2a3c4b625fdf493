"""xbert: give each document the few right labels out of very many, in three stages: index, match, rank."""

__version__ = "0.1.0"
