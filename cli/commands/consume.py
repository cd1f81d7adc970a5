"""`kquorum consume`: print the records of a topic."""

from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import BootstrapServer, MaybeConfigPath, TimeoutMs

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kquorum.cli.clients.partition_client import PartitionClient, TopicPlace
    from kquorum.wire.record_parsing import Record

_LATEST, _EARLIEST = -1, -2


def consume(
    topic: Annotated[str, typer.Argument(help="The topic's name.")],
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, help="Only this one; may be repeated.")
    ] = None,
    offset: Annotated[
        str,
        typer.Option(
            "--offset",
            "-o",
            help="beginning, end, an offset, -N for the last N of each partition, or @TIME: the first at or after "
            "this time, as 2026-01-31T12:00:00Z or in ms since 1970.",
        ),
    ] = "beginning",
    until_end: Annotated[
        bool, typer.Option("--until-end", "-e", help="End when all records that are there now are printed.")
    ] = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="End after so many.")] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Print the key before the value.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="Print the headers.")] = False,
    offsets: Annotated[bool, typer.Option("--offsets", help="Print partition and offset.")] = False,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Print the time (UTC).")] = False,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 30_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Print the value of each record on a line of its own, until Ctrl-C; the other fields stand before it, separated by
    tabs.

    The records of one partition come in order. When a leader fails, the command goes on with the next one; --timeout-ms
    is how long no broker may answer. Only committed records are printed.
    """
    import asyncio

    from kquorum.cli.clients.addresses import broker_addresses
    from kquorum.cli.clients.partition_client import PartitionClient

    start = Start(offset)
    client = PartitionClient(broker_addresses(config, bootstrap_server), timeout_ms)
    printer = _printer(as_json=as_json, keys=keys, headers=headers, offsets=offsets, timestamps=timestamps)
    reading = _Reading(client, topic, printer, limit)
    asyncio.run(reading.run(start, partition, until_end=until_end))


class Start:
    """Where to begin in each partition. Raises CliError for a text that says nothing of the kind."""

    def __init__(self, text: str, option: str = "--offset") -> None:
        self._timestamp: int | None = None
        self._offset: int | None = None
        self._is_from_end = False
        if text in ("beginning", "end"):
            self._timestamp = _EARLIEST if text == "beginning" else _LATEST
        elif text.startswith("@"):
            self._timestamp = _time_ms(text[1:], option)
        else:
            self._offset = _number(text, option)
            self._is_from_end = text.startswith("-")

    async def offset_in(self, client: "PartitionClient", place: "TopicPlace", partition: int) -> int:
        if self._timestamp is not None:
            found = await client.offset(place, partition, self._timestamp)
            # Nothing is as new: what comes from now on is.
            return found if found >= 0 else await client.offset(place, partition, _LATEST)
        assert self._offset is not None, "a text that says neither is refused"
        if not self._is_from_end:
            return self._offset
        first = await client.offset(place, partition, _EARLIEST)
        return max(first, await client.offset(place, partition, _LATEST) + self._offset)


def _time_ms(text: str, option: str) -> int:
    from datetime import UTC, datetime

    from kquorum.cli.failures import usage_error

    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise usage_error(
            f"{option} @{text}: it is neither a time such as 2026-01-31T12:00:00Z nor ms"
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _number(text: str, option: str) -> int:
    from kquorum.cli.failures import usage_error

    try:
        return int(text)
    except ValueError:
        raise usage_error(f"{option} {text}: there are beginning, end, N, -N and @TIME") from None


class _Reading:
    def __init__(
        self,
        client: "PartitionClient",
        topic: str,
        show: "Callable[[int, Record], None]",
        limit: int | None,
    ) -> None:
        self._client = client
        self._topic = topic
        self._show = show
        self._left = limit

    async def run(self, start: Start, partitions: list[int] | None, *, until_end: bool) -> None:
        """A partition is read by a task of its own, each on the connection of its leader."""
        import asyncio

        from kquorum.cli.failures import usage_error

        async with self._client as client:
            place = await client.topic(self._topic)
            chosen = sorted(set(partitions)) if partitions else list(place.leaders)
            for each in chosen:
                if each not in place.leaders:
                    last = max(place.leaders)
                    raise usage_error(f"{self._topic} has the partitions 0 to {last}, not {each}")
            tasks = [
                asyncio.ensure_future(self._read(place, each, start, until_end=until_end)) for each in chosen
            ]
            try:
                await self._until_all(tasks)
            finally:
                for task in tasks:
                    task.cancel()

    async def _until_all(self, tasks: "list[Any]") -> None:
        """Or until one has failed, or as many records as wanted are printed."""
        import asyncio

        waiting = set(tasks)
        while waiting and self._left != 0:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    async def _read(self, place: "TopicPlace", partition: int, start: Start, *, until_end: bool) -> None:
        offset = await start.offset_in(self._client, place, partition)
        end = await self._client.offset(place, partition, _LATEST) if until_end else None
        while end is None or offset < end:
            found = await self._client.fetch(place, partition, offset)
            for record in found.records:
                if self._left == 0 or (end is not None and record.offset >= end):
                    return
                self._show(partition, record)
                if self._left is not None:
                    self._left -= 1
            if self._left == 0:
                return
            offset = found.next_offset


def _printer(
    *, as_json: bool, keys: bool, headers: bool, offsets: bool, timestamps: bool
) -> "Callable[[int, Record], None]":
    import sys

    from kquorum.cli.clients.record_text import record_as_json
    from kquorum.cli.output import json_text, utc_text
    from kquorum.wire.safe_text import safe_lines

    out = sys.stdout
    # On a terminal, what would move its cursor is shown, not sent; a file gets what was produced.
    as_shown = safe_lines if out.isatty() else str

    def text(data: bytes | None) -> str:
        return "(null)" if data is None else as_shown(data.decode(errors="backslashreplace"))

    def show(partition: int, record: "Record") -> None:
        if as_json:
            line = json_text(record_as_json(partition, record))
        else:
            parts = [f"{partition}:{record.offset}"] if offsets else []
            parts += [utc_text(record.timestamp_ms)] if timestamps else []
            if headers:
                parts.append(",".join(f"{as_shown(name)}={text(value)}" for name, value in record.headers))
            parts += [text(record.key)] if keys else []
            line = "\t".join([*parts, text(record.value)])
        out.write(line + "\n")
        # The reader of a pipe gets each record when it comes.
        out.flush()

    return show


COMMAND = Command(
    run=consume,
    summary="Print the records of a topic.",
    panel=Panel.ASK,
    place=9,
    examples={
        "": (
            "kquorum consume orders -c quorum.toml --keys --offsets",
            "kquorum consume orders --offset -10 --until-end --json",
            "kquorum consume orders --offset @2026-01-31T12:00:00Z",
        ),
    },
)
