"""A few KiB in a log or from a peer must not unpack to more than memory holds."""

import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kquorum.raft.messages import FetchRequest
from kquorum.raft.ready import QuorumState
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.log_scan import Damage, scan_batches
from kquorum.wire.primitives import write_varint
from kquorum.wire.record_batch import (
    MAX_BATCH_RECORDS,
    MAX_DECOMPRESSED_BYTES,
    check_batch,
    read_records,
    read_values,
)
from kquorum.wire.record_parsing import MAX_BATCH_HEADERS
from tests.support.batches import rewrite_offsets
from tests.support.large_batches import bomb, no_ops, record_bomb
from tests.support.raft.context import RaftContext, batch

MANY = 9_000_000
# Python with all that the commands import takes 150 MB of addresses and more; the attack took 1.4 GB of memory.
ADDRESS_SPACE = 1_000_000_000


def header_bomb(count: int) -> bytes:
    """One record with so many headers, each an empty key and no value."""
    return _one_record(b"\0\0\0\x01\x01" + _varint(count) + b"\0\x01" * count)


def _varint(number: int) -> bytes:
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


def _one_record(content: bytes) -> bytes:
    return bomb(1, _varint(len(content)) + content)


BOMBS = {
    "records": lambda: record_bomb(MANY),
    "bytes": lambda: bomb(1, bytes(MAX_DECOMPRESSED_BYTES + 1)),
    "headers": lambda: header_bomb(3_000_000),
}


@pytest.fixture(scope="module", params=list(BOMBS))
def made(request: pytest.FixtureRequest) -> bytes:
    data = BOMBS[request.param]()
    assert len(data) < 20_000
    return data


def test_no_bomb_is_unpacked(made: bytes) -> None:
    for read in (read_records, read_values):
        with pytest.raises(
            DecodeError, match=f"{MAX_BATCH_RECORDS}|{MAX_DECOMPRESSED_BYTES}|{MAX_BATCH_HEADERS}"
        ):
            read(made, 0, check_batch(made))


def test_a_scan_names_place_and_limit_and_goes_on() -> None:
    data = batch(0, 1).data + record_bomb(MANY)
    (_, damage) = scan_batches(data)
    assert isinstance(damage, Damage)
    assert (damage.position, damage.kind) == (len(batch(0, 1).data), "corrupt")
    assert f"{MANY} records" in damage.reason
    assert str(MAX_BATCH_RECORDS) in damage.reason


def test_the_largest_batch_of_a_leader_is_read() -> None:
    """A buffer of 8 MiB full of the shortest records."""
    count = 620_000
    plain = no_ops(count)
    assert MAX_DECOMPRESSED_BYTES * 0.95 < len(plain) <= MAX_DECOMPRESSED_BYTES
    data = bomb(count, plain)
    assert len(read_values(data, 0, check_batch(data))) == count


QUICK = ("verify", "dump")
COMMANDS = [
    *(("records", command) for command in QUICK),
    *(
        pytest.param(kind, command, marks=pytest.mark.slow)
        for kind in BOMBS
        for command in (*QUICK, "dump --json", "state-hash")
        if kind != "records" or command not in QUICK
    ),
]


@pytest.mark.parametrize(("kind", "command"), COMMANDS)
def test_commands_tell_of_a_bomb_and_end(kind: str, command: str, tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(BOMBS[kind]())
    program = Path(sys.executable).with_name("kquorum")
    done = subprocess.run(
        [program, "log", *command.split(), tmp_path],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
    )
    said = done.stdout + done.stderr
    assert done.returncode == 3, said
    assert "Traceback" not in said
    assert "00000000000000000000.log" in said


@pytest.mark.parametrize("kind", ["records", "bytes"])
@pytest.mark.parametrize("sound", [(), (batch(0, 2, count=3),)], ids=["alone", "behind a sound one"])
def test_a_follower_takes_no_bomb_from_its_leader(kind: str, sound: tuple[LogBatch, ...]) -> None:
    """It was appended and acknowledged, and unpacked when it was committed."""
    context = RaftContext((1, 2), state=QuorumState(leader_epoch=2, leader_id=2))
    (fetch,) = context.sent(FetchRequest)
    before = b"".join(each.data for each in sound)
    records = before + rewrite_offsets(BOMBS[kind](), 3 * len(sound), 2)
    context.answer(fetch, replace(context.fetched(high_watermark=0), records=records))
    assert context.log_end_offset == 3 * len(sound)
    assert context.standing == ("follower", 2, 2)


def test_much_compressed_data_is_taken_over_in_several_fetches() -> None:
    """Looking at it unpacks it, in the loop."""
    context = RaftContext((1, 2), state=QuorumState(leader_epoch=2, leader_id=2))
    plain = _varint(8_000_000) + bytes(8_000_000)
    large = [rewrite_offsets(bomb(1, plain), offset, 2) for offset in range(5)]
    assert len(b"".join(large)) < 20_000
    taken = []
    while context.log_end_offset < 5:
        (fetch,) = context.sent(FetchRequest)
        assert isinstance(fetch.request, FetchRequest)
        rest = b"".join(large[fetch.request.fetch_offset :])
        context.answer(fetch, replace(context.fetched(high_watermark=0), records=rest))
        taken.append(context.log_end_offset)
    assert taken == [3, 5]
