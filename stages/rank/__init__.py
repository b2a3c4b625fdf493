"""Rankers: the order of the labels inside the clusters a matcher found."""
