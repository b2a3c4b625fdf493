"""Readers of the field's formats, and the dataset they become."""
