"""The work of `log diff` and `snapshot diff`: two states, and what differs between them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from cli.commands.log_lines import iso_time
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.log_check.change_tables import show_changes, write_changes_json
from cli.log_check.folder import the_log
from cli.log_check.log_end import within_its_end
from cli.log_check.states import Moment, State, first_state, state_at
from cli.output import complain, console
from metadata.image.diff import diff_images
from metadata.image.state_change import StateChange
from metadata.log_check.quorum_view import diff_quorums
from wire.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest:
    """`since` and `until` are None for the first state that the files hold and for the end of the log."""

    path: Path
    since: Moment | None
    until: Moment | None
    as_json: bool
    limit: int


def diff(request: DiffRequest) -> ExitStatus:
    """Show what changed between two moments of one log; raises CliError."""
    _check_order(request.since, request.until)
    log = within_its_end(the_log(request.path), _warn)
    before = first_state(log) if request.since is None else state_at(log, request.since, _warn)
    after = state_at(log, request.until or Moment(), _warn, before if _is_comparable(request) else None)
    if after.offset < before.offset:
        reason = f"offset {after.offset}, where the time asked for ends, is before offset {before.offset}"
        raise CliError(f"{log.source}: {reason}", status=ExitStatus.USAGE)
    show_difference(log.source, before, after, as_json=request.as_json, limit=request.limit)
    return ExitStatus.OK


def _check_order(since: Moment | None, until: Moment | None) -> None:
    """Raises CliError for bounds of the same sort that are backwards."""
    if since is None or until is None:
        return
    for first, last in ((since.offset, until.offset), (since.time_ms, until.time_ms)):
        if first is not None and last is not None and last < first:
            raise CliError(f"from {first} to {last} is backwards: exchange the two", status=ExitStatus.USAGE)


def _is_comparable(request: DiffRequest) -> bool:
    """Whether the second moment is known to be no earlier than the first, so that one replay serves both."""
    since, until = request.since, request.until
    if since is None or until is None:
        return True
    return (since.offset is None) == (until.offset is None)


def show_difference(source: str, before: State, after: State, *, as_json: bool, limit: int) -> None:
    """Tables or JSON on standard output; what the states lack on standard error."""
    for name, state in (("before", before), ("after", after)):
        _warn_of_gaps(name, state)
    changes = _changes(before, after)
    if as_json:
        head = {"source": source, "from": _state_json(before), "to": _state_json(after)}
        write_changes_json(head, changes)
        return
    out = console()
    out.print(f"{source}: what changed", style="bold")
    out.print(f"  from {_state_text(before)}")
    out.print(f"  to   {_state_text(after)}")
    show_changes(changes, limit=limit)


def _changes(before: State, after: State) -> Iterator[StateChange]:
    return chain(diff_quorums(before.quorum, after.quorum), diff_images(before.image, after.image))


def _state_text(state: State) -> str:
    if state.offset == 0:
        return "nothing (offset 0)"
    when = "" if state.timestamp_ms is None else f", {iso_time(state.timestamp_ms)}"
    return f"offset {state.offset} (epoch {state.epoch}{when})"


def _state_json(state: State) -> dict[str, object]:
    return {
        "offset": state.offset,
        "epoch": state.epoch,
        "timestamp_ms": state.timestamp_ms,
        "replayed_since": state.since,
        "open_transaction_since": state.transaction_start_offset,
        "unknown_records": state.unknown_count,
        "records_not_replayed": len(state.faults),
    }


def _warn_of_gaps(name: str, state: State) -> None:
    if state.transaction_start_offset is not None:
        _warn(
            f"the state {name} leaves out the transaction that began at offset {state.transaction_start_offset} "
            f"and is open at offset {state.offset}"
        )
    if state.unknown_count:
        _warn(
            f"the state {name} lacks {counted(state.unknown_count, 'record')} of types unknown to this program"
        )
    if state.faults:
        first = state.faults[0]
        _warn(
            f"the state {name} lacks {counted(len(state.faults), 'record')} that could not be replayed, the first at "
            f"offset {first.offset}: {first.reason}"
        )


def _warn(message: str) -> None:
    complain(message, style="yellow", label="warning")
