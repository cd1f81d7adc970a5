"""Failures of a command: the error that a user reads, and the exit status of the process.

The table of exit statuses names exceptions by module and class, so that it imports none of the parts that raise
them: a command that needs no network must not pay for one.
"""

import errno
import os
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path


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


class CliError(Exception):
    """The message names the thing, the place and the remedy; the process ends with `status`."""

    def __init__(
        self, message: str, *, status: ExitStatus = ExitStatus.FAILED, is_in_json: bool = False
    ) -> None:
        """`is_in_json`: what `--json` printed has told it already."""
        self.status = status
        self.is_in_json = is_in_json
        super().__init__(message)


_NAMED_REFUSALS = 5


def check_refusals(refusals: Sequence[str], what: str) -> None:
    """Raises CliError if there are refusals, of which it names some; `what` was not done."""
    if refusals:
        more = len(refusals) - _NAMED_REFUSALS
        rest = f"; and {more:,} more" if more > 0 else ""
        raise CliError(f"{what}: {'; '.join(refusals[:_NAMED_REFUSALS])}{rest}")


def usage_error(message: str) -> CliError:
    """A command line that contradicts itself, the config or the cluster."""
    return CliError(message, status=ExitStatus.USAGE)


# (module, class) -> status; the first class of an exception's ancestry that is listed decides.
_STATUSES: dict[tuple[str, str], ExitStatus] = {
    ("kquorum.node.config.errors", "ConfigError"): ExitStatus.USAGE,
    ("kquorum.metadata.controller.quorum.activation", "LogUnsupported"): ExitStatus.FOLDER_REFUSED,
    ("kquorum.network.errors", "CannotListen"): ExitStatus.CANNOT_LISTEN,
    ("kquorum.network.errors", "NetworkError"): ExitStatus.UNREACHABLE,
    ("kquorum.node.errors", "AssertionsOff"): ExitStatus.USAGE,
    ("kquorum.node.errors", "NotRegistered"): ExitStatus.UNREACHABLE,
    ("kquorum.node.errors", "LogDirsFailed"): ExitStatus.IO_ERROR,
    ("kquorum.node.errors", "BrokerGaveUp"): ExitStatus.UNREACHABLE,
    ("kquorum.storage.errors", "FolderRefused"): ExitStatus.FOLDER_REFUSED,
    ("kquorum.storage.errors", "DamagedInput"): ExitStatus.DAMAGED_INPUT,
    ("kquorum.raft.errors", "LogDivergedBelowHighWatermarkError"): ExitStatus.DAMAGED_INPUT,
    ("kquorum.storage.errors", "StorageFailed"): ExitStatus.IO_ERROR,
    ("kquorum.wire.errors", "DecodeError"): ExitStatus.DAMAGED_INPUT,
}


def status_of(error: BaseException) -> ExitStatus:
    """INTERNAL_ERROR for an exception that the table does not name."""
    if isinstance(error, CliError):
        return error.status
    for cls in type(error).__mro__:
        status = _STATUSES.get((cls.__module__, cls.__name__))
        if status is not None:
            return status
    if isinstance(error, ModuleNotFoundError):
        return ExitStatus.MISSING_REQUIREMENT
    if isinstance(error, OSError):
        return ExitStatus.CANNOT_LISTEN if error.errno == errno.EADDRINUSE else ExitStatus.IO_ERROR
    return ExitStatus.INTERNAL_ERROR


def message_of(error: BaseException) -> str:
    """One line for most; a config error has a line for each broken rule."""
    if isinstance(error, ModuleNotFoundError):
        return f"the Python package {error.name} is not installed; install kquorum with its dependencies"
    if isinstance(error, OSError) and error.filename is not None:
        from kquorum.storage.ownership import permission_remedy

        remedy = permission_remedy(Path(os.fsdecode(error.filename)), error)
        return f"{error.filename}: {error.strerror}" + ("" if remedy is None else f"; {remedy}")
    if status_of(error) is ExitStatus.INTERNAL_ERROR:
        kind = type(error).__name__
        return f"internal error ({kind}: {error}); this is a defect of kquorum, --debug shows where"
    return str(error)
