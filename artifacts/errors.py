"""Every error a person may meet, and the exit code it ends a command with.

    XbertError
    |-- UsageError       2   the command line is wrong
    |-- InputError       3   a file or a setting given by the user is wrong
    |-- ArtifactError    3   a stored result is damaged, foreign, or of a newer format
    |-- StorageError     3   the disk is full, the folder cannot be written
    |-- StaleError       1   something has to be run again first
    `-- BusyError        4   another process is at work on the same result

A message is one sentence that says what is wrong with which value, where, and what to do.
"""


class XbertError(Exception):
    """Anything xbert reports instead of a traceback."""

    exit_code = 3


class UsageError(XbertError):
    """The command line asks for something that cannot be."""

    exit_code = 2


class InputError(XbertError):
    """A file or a setting of the user is missing, malformed or contradictory."""


class ArtifactError(XbertError):
    """A stored result cannot be trusted or understood."""


class StorageError(XbertError):
    """The file system refused: full, read-only, or not permitted."""


class StaleError(XbertError):
    """A result that is needed is missing or no longer fits its settings."""

    exit_code = 1


class BusyError(XbertError):
    """Another process holds the lock."""

    exit_code = 4
