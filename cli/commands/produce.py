"""`kquorum produce`: append the lines of the standard input, or of a file, to a topic."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapServer, MaybeConfigPath, TimeoutMs

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator
    from typing import Any

    from kquorum.cli.clients.partition_client import PartitionClient
    from kquorum.cli.clients.record_text import NewRecord

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_ACKS = {"all": -1, "1": 1}
# A batch goes out when it has so many records or bytes, or when no further line came for a moment.
_BATCH_RECORDS = 1_000
_BATCH_BYTES = 262_144
_LINGER_S = 0.05


def produce(
    topic: Annotated[str, typer.Argument(help="The topic's name.")],
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of all records.")] = None,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", help="What separates key and value in a line.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header; may be repeated."),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", min=0, help="The partition; by default the key decides."),
    ] = None,
    from_json: Annotated[
        bool,
        typer.Option("--from-json", help="Each line is a JSON object as `kquorum consume --json` prints it."),
    ] = False,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read this file.")] = None,
    acks: Annotated[
        str, typer.Option("--acks", help="all: all in-sync replicas have it; 1: the leader.")
    ] = "all",
    compression: Annotated[str, typer.Option("--compression", help=", ".join(_CODECS))] = "none",
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 30_000,
    as_json: AsJson = False,
) -> None:
    """Append a record for each line, and print how many came where.

    Records of one key go to one partition, that which Java's clients choose. A batch whose answer is lost is sent
    again; brokers notice it by its sequence number. --timeout-ms is the limit of each batch.
    """
    import asyncio

    from kquorum.cli.clients.addresses import broker_addresses
    from kquorum.cli.clients.partition_client import PartitionClient
    from kquorum.cli.clients.record_text import RecordReader
    from kquorum.cli.failures import usage_error
    from kquorum.wire.compression import CompressionCodec

    if acks not in _ACKS:
        raise usage_error(f"--acks {acks}: there are all and 1")
    if compression not in _CODECS:
        raise usage_error(f"--compression {compression}: there are {', '.join(_CODECS)}")
    if from_json and (key is not None or key_separator is not None):
        raise usage_error(
            "--from-json lines have their own keys; --key and --key-separator do not go with it"
        )
    reader = RecordReader(
        key=key, key_separator=key_separator, headers=header or (), partition=partition, is_json=from_json
    )
    client = PartitionClient(broker_addresses(config, bootstrap_server), timeout_ms)
    sending = _Sending(client, topic, _ACKS[acks], CompressionCodec[compression.upper()], as_json=as_json)
    asyncio.run(sending.run(reader.records(_lines(file))))


def _lines(file: Path | None) -> "Iterator[bytes]":
    """Without their ends. Raises CliError for a file that cannot be read."""
    import sys

    from kquorum.cli.failures import CliError, ExitStatus

    if file is None:
        for line in sys.stdin.buffer:
            yield line.rstrip(b"\r\n")
        return
    try:
        with file.open("rb") as opened:
            for line in opened:
                yield line.rstrip(b"\r\n")
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}", status=ExitStatus.IO_ERROR) from error


class _Sending:
    """One batch of each partition is under way at a time, so that the order of the lines is kept."""

    def __init__(
        self, client: "PartitionClient", topic: str, acks: int, codec: "Any", *, as_json: bool
    ) -> None:
        self._client = client
        self._topic = topic
        self._acks = acks
        self._codec = codec
        self._as_json = as_json
        # By partition: how many records, the first offset and the last.
        self._appended: dict[int, list[int]] = {}
        self._told_at_s = 0.0

    async def run(self, records: "Iterator[NewRecord]") -> None:
        import asyncio
        import threading

        loop = asyncio.get_running_loop()
        intake = _Intake(loop)
        async with self._client as client:
            place = await client.topic(self._topic)
            chooser = _Chooser(self._topic, list(place.leaders))
            producer_id, epoch = await client.new_producer_id()
            senders = self._senders(place, producer_id, epoch)
            # A read of the terminal cannot be ended: the process does not wait for it.
            threading.Thread(target=intake.read, args=(records,), daemon=True).start()
            is_over = False
            while not is_over:
                batch, is_over = await intake.next_batch()
                by_partition: dict[int, list[NewRecord]] = {}
                for record in batch:
                    by_partition.setdefault(chooser.choose(record), []).append(record)
                await asyncio.gather(
                    *(senders(partition, found) for partition, found in by_partition.items())
                )
                chooser.next_batch()
                self._tell_progress(loop.time())
        self._tell()

    def _senders(self, place: "Any", producer_id: int, epoch: int) -> "Any":
        import json
        import sys

        from kquorum.cli.clients.partition_client import Producer

        producers: dict[int, Producer] = {}

        async def send(partition: int, records: "list[NewRecord]") -> None:
            producer = producers.setdefault(partition, Producer(producer_id, epoch))
            base_offset = await self._client.produce(
                place,
                partition,
                [each.at(index) for index, each in enumerate(records)],
                acks=self._acks,
                producer=producer,
                codec=self._codec,
            )
            last = base_offset + len(records) - 1
            count, first, _ = self._appended.get(partition, [0, base_offset, 0])
            self._appended[partition] = [count + len(records), first, last]
            if self._as_json:
                appended = {"partition": partition, "first_offset": base_offset, "last_offset": last}
                sys.stdout.write(json.dumps(appended) + "\n")
                sys.stdout.flush()

        return send

    def _tell_progress(self, now_s: float) -> None:
        """Once a second, on a terminal."""
        import sys

        from kquorum.cli.output import remark

        if now_s - self._told_at_s >= 1 and sys.stderr.isatty():
            self._told_at_s = now_s
            remark(f"{sum(count for count, _, _ in self._appended.values()):,} records appended")

    def _tell(self) -> None:
        from kquorum.cli.output import say
        from kquorum.wire.wording import counted

        if self._as_json:
            return
        total = sum(count for count, _, _ in self._appended.values())
        places = "; ".join(
            f"partition {partition}: {count:,} at offsets {first} to {last}"
            for partition, (count, first, last) in sorted(self._appended.items())
        )
        say(f"{counted(total, 'record')} appended to {self._topic}" + (f" ({places})" if places else ""))


class _Intake:
    """The records that a thread has read, and the loop has not sent yet.

    The thread hands over many records for each time that it wakes the loop: on a loaded machine, a wake for each record
    takes milliseconds.
    """

    # The reader waits when so many records lie here: a pipe may be faster than the brokers.
    _MAX_RECORDS = 4 * _BATCH_RECORDS

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        import asyncio
        import threading
        from collections import deque

        self._loop = loop
        self._arrived = asyncio.Event()
        # Guards all below, which both threads use.
        self._changed = threading.Condition()
        self._records: deque[NewRecord] = deque()
        self._is_awaited = False
        self._is_over = False
        self._error: BaseException | None = None

    def read(self, records: "Iterator[NewRecord]") -> None:
        """In the thread: take in all records."""
        try:
            for record in records:
                self._put(record)
        except BaseException as error:  # noqa: BLE001 - raised again where the records are taken
            self._error = error
        with self._changed:
            self._is_over = True
            self._wake()

    async def next_batch(self) -> "tuple[list[NewRecord], bool]":
        """The records that are there, at least one, and whether they are the last. Raises what the reader raised, once
        all records before it were taken."""
        import asyncio

        batch: list[NewRecord] = []
        size = 0
        while True:
            with self._changed:
                while self._records and len(batch) < _BATCH_RECORDS and size < _BATCH_BYTES:
                    record = self._records.popleft()
                    batch.append(record)
                    size += record.size_bytes
                self._changed.notify()
                if len(batch) >= _BATCH_RECORDS or size >= _BATCH_BYTES:
                    return batch, False
                if self._is_over:
                    if self._error is not None and not batch:
                        raise self._error
                    return batch, self._error is None
                self._arrived.clear()
                self._is_awaited = True
            try:
                async with asyncio.timeout(_LINGER_S if batch else None):
                    await self._arrived.wait()
            except TimeoutError:
                return batch, False

    def _put(self, record: "NewRecord") -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._records) < self._MAX_RECORDS)
            self._records.append(record)
            self._wake()

    def _wake(self) -> None:
        from contextlib import suppress

        if not self._is_awaited:
            return
        self._is_awaited = False
        with suppress(RuntimeError):  # the command has ended, and its loop is closed
            self._loop.call_soon_threadsafe(self._arrived.set)


class _Chooser:
    """Which partition a record goes to: that of its key, or one for all records of a batch without a key."""

    def __init__(self, topic: str, partitions: list[int]) -> None:
        self._topic = topic
        self._partitions = partitions
        self._turn = 0

    def next_batch(self) -> None:
        self._turn += 1

    def choose(self, record: "NewRecord") -> int:
        from kquorum.cli.clients.record_text import murmur2
        from kquorum.cli.failures import usage_error

        if record.partition is not None:
            if record.partition not in self._partitions:
                last = self._partitions[-1]
                raise usage_error(f"{self._topic} has the partitions 0 to {last}, not {record.partition}")
            return record.partition
        count = len(self._partitions)
        number = self._turn if record.key is None else murmur2(record.key) & 0x7FFF_FFFF
        return self._partitions[number % count]


COMMAND = Command(
    run=produce,
    summary="Append lines to a topic.",
    panel=Panel.ASK,
    place=8,
    examples={
        "": (
            "echo hello | kquorum produce greetings -c quorum.toml",
            "kquorum produce orders --key-separator : < orders.txt",
            "kquorum consume a --json | kquorum produce b --from-json",
        ),
    },
)
