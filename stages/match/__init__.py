"""Matchers: which clusters may hold a document's labels."""
