"""The tight loops: arrays in, arrays out; no files and no settings here."""
