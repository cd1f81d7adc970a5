"""Moments as a user writes them: offsets, times, `start` and `end`."""

from dataclasses import dataclass

from cli.commands.log_filters import parse_time
from cli.errors import CliError
from cli.exit_status import ExitStatus
from spark_replay.audit_folder import AuditTables
from spark_replay.questions.moments import (
    Moment,
    NoSuchMoment,
    first_moment,
    last_moment,
    moment_at_offset,
    moment_at_time,
)

# As milliseconds this is March 1973, as an offset decades of a busy log.
LEAST_MILLISECONDS = 100_000_000_000
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Asked:
    """An offset, a time, or with neither the `end` or the start of the log."""

    offset: int | None = None
    time_ms: int | None = None
    is_start: bool = False


def asked_by_options(offset: int | None, time: str | None) -> Asked:
    """Of `--offset` and `--time`: one of them, or neither for the end of the log. Raises CliError."""
    if offset is not None and time is not None:
        raise CliError("--offset and --time both say when: choose one", status=ExitStatus.USAGE)
    if time is not None:
        return Asked(time_ms=time_of("--time", time))
    return Asked(offset=_within("--offset", offset))


def asked_by_word(name: str, text: str) -> Asked:
    """Of an argument called `name`: a number below 100,000,000,000 is an offset. Raises CliError."""
    if text in ("start", "end"):
        return Asked(is_start=text == "start")
    if _is_number(text) and abs(int(text)) < LEAST_MILLISECONDS:
        return Asked(offset=int(text))
    return Asked(time_ms=time_of(name, text))


def time_of(option: str, text: str) -> int:
    """Milliseconds since 1970 of ISO 8601 (UTC unless it says otherwise) or of such a number. Raises CliError."""
    if not text.isascii() or len(text) > 40:
        raise CliError(
            f"{option}: neither ISO 8601 (2026-01-31T12:00:00Z) nor milliseconds since 1970",
            status=ExitStatus.USAGE,
        )
    time_ms = _within(option, parse_time(option, text))
    assert time_ms is not None
    return time_ms


def maybe_time_of(option: str, text: str | None) -> int | None:
    return None if text is None else time_of(option, text)


def moment_of(tables: AuditTables, source: str, asked: Asked) -> Moment:
    """The moment in the log. Raises CliError for one that the log does not reach."""
    try:
        if asked.offset is not None:
            return moment_at_offset(tables, source, asked.offset)
        if asked.time_ms is not None:
            return moment_at_time(tables, source, asked.time_ms)
    except NoSuchMoment as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    return first_moment(tables, source) if asked.is_start else last_moment(tables, source)


def _is_number(text: str) -> bool:
    return text.isascii() and len(text) <= 20 and text.removeprefix("-").isdecimal()


def _within(option: str, value: int | None) -> int | None:
    if value is not None and abs(value) > _MOST:
        raise CliError(f"{option} {value}: no log goes that far", status=ExitStatus.USAGE)
    return value
