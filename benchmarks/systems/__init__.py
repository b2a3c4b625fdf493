"""The systems that are measured: a worker for each, run as `python -m systems.NAME` in the system's own environment.

As modules of a package, because a script called pecos.py would hide the package it wants to import.
"""
