"""What a process of ours says when it ends; scripts may rely on these numbers."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit statuses; the message on stderr says more."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DAMAGED_INPUT = 3
    FOLDER_REFUSED = 4
    CANNOT_LISTEN = 5
    UNREACHABLE = 6
    MISSING_REQUIREMENT = 7
    INTERNAL_ERROR = 70
    IO_ERROR = 74
    INTERRUPTED = 130
