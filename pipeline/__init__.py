"""What to run: an experiment file becomes a graph of stages, and only what is out of date runs."""
