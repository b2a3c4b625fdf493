"""Heads: from an encoder's states to scores of targets. A head owns its loss and its probabilities, and knows no files."""
