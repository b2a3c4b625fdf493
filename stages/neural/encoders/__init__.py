"""Encoders: from token numbers to the states of all layers. They know no labels, files of a run, or epochs."""
