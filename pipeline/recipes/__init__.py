"""Recipes: experiment files that name one method per stage, kept as package data."""
