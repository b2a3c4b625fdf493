"""Text to TF-IDF rows of unit length."""
