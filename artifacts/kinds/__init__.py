"""The kinds of artifact, one file each: plain arrays, text and JSON with a format number."""
