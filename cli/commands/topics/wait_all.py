"""`--wait-all`: wait until every broker has applied what was just committed."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kquorum.cli.clients.addresses import grpc_addresses
from kquorum.cli.commands.brokers.rows import BrokerRow
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.wire.wording import counted

if TYPE_CHECKING:
    from kquorum.wire.proto.quorum_pb2 import WaitAppliedResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Everywhere:
    """Every broker that is not fenced has applied `offset`; these are fenced and have not."""

    offset: int
    fenced: tuple[int, ...]

    @property
    def words(self) -> str:
        text = f"every broker that is not fenced has applied it (offset {self.offset})"
        if not self.fenced:
            return text
        return f"{text}; fenced, and without it: {', '.join(map(str, self.fenced))}"

    def as_json(self) -> dict[str, object]:
        return {"applied_everywhere": True, "offset": self.offset, "fenced_without": list(self.fenced)}


class WaitForAll:
    """The time begins when it is made: what is done before takes its part of it."""

    def __init__(self, config: Path | None, grpc: str | None, timeout_ms: int) -> None:
        """Raises CliError or ConfigError where no gRPC listener is known, before anything is done."""
        self._addresses = grpc_addresses(config, grpc, needed_by="--wait-all")
        self._timeout_ms = timeout_ms
        self._deadline = time.monotonic() + timeout_ms / 1000

    def run(self, done: str) -> Everywhere:
        """For all that is committed by now. Raises CliError, which begins with what was done, where a broker lacks it
        when the time is up, and where no controller tells."""
        from kquorum.cli.clients.cluster_client import run_asking
        from kquorum.cli.commands.brokers.members_grpc import wait_applied

        left_ms = max(round((self._deadline - time.monotonic()) * 1000), 1)
        try:
            waited = run_asking(wait_applied(self._addresses, None, left_ms))
        except CliError as error:
            raise CliError(f"{done}, but {error}", status=error.status) from error
        if not waited.is_applied:
            raise CliError(f"{done}, but {self._missing(waited)}", status=ExitStatus.UNREACHABLE)
        return Everywhere(offset=waited.offset, fenced=tuple(each.broker_id for each in waited.fenced))

    def _missing(self, waited: "WaitAppliedResponse") -> str:
        from kquorum.cli.commands.brokers.members_grpc import row_of

        lagging = lagging_words((row_of(each) for each in waited.lagging), waited.offset)
        return f"within {self._timeout_ms} ms offset {waited.offset} was not applied everywhere: {lagging}"


def lagging_words(rows: Iterable[BrokerRow], offset: int) -> str:
    return "; ".join(_lagging(row, offset) for row in rows)


def _lagging(row: BrokerRow, offset: int) -> str:
    who = f"broker {row.broker_id} ({row.host}:{row.port})"
    heard = "" if row.silent_ms is None else f", last heard {row.silent_ms / 1000:.1f} s ago"
    if row.applied_offset is None:
        return f"{who} has not said how far it is{heard}"
    return f"{who} lacks {counted(offset - row.applied_offset, 'record')}{heard}"
