"""The log of a running node, copied over real loopback gRPC into files that read as the node's own."""

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.commands.audit.live_log import LiveCopy, Mirror, live_address
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.metadata.grpc.access import MemberGate
from kquorum.metadata.image.image import MetadataImage
from kquorum.node.config.addresses import HostPort
from tests.support.acl_worlds import authorizer
from tests.support.grpc_harness import eventually, run, serving
from tests.support.grpc_source import FakeSource, topic

NODE = "node-7"
SNAPSHOT = "00000000000000000002-0000000003.checkpoint"


def filled(count: int) -> FakeSource:
    source = FakeSource()
    for number in range(count):
        source.commit(topic(f"topic-{number}", number))
    return source


def bytes_of(source: FakeSource, start: int = 0) -> bytes:
    return b"".join(batch.data for batch in source.batches[start:])


def segments(folder: Path) -> dict[int, bytes]:
    return {int(path.stem): path.read_bytes() for path in sorted(folder.rglob("*.log"))}


def copied(source: FakeSource, folder: Path, **options: Any) -> list[str]:
    told: list[str] = []

    async def main() -> None:
        async with serving(source, **options) as rig:
            address = HostPort("127.0.0.1", rig.server.bound_port)
            assert await LiveCopy(address, folder, told.append).catch_up() == folder / NODE

    run(main)
    return told


def test_a_copy_has_the_nodes_bytes_and_is_private_to_its_owner(tmp_path: Path) -> None:
    source = filled(5)
    source.append(b"\x01\x02\x00")
    source.snapshot_files = {SNAPSHOT: b"s" * 700_000, "bootstrap.checkpoint": b"b"}
    copied(source, tmp_path / "copy")
    folder = tmp_path / "copy" / NODE / "__cluster_metadata-0"
    assert segments(folder) == {0: b"".join(batch.data for batch in source.batches[:5])}
    assert (folder / SNAPSHOT).read_bytes() == b"s" * 700_000
    assert (folder.parent / "bootstrap.checkpoint").read_bytes() == b"b"
    files = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "copy" / NODE).stat().st_mode) == 0o700


def test_a_second_copy_goes_on_where_the_first_was_torn(tmp_path: Path) -> None:
    source = filled(3)
    copied(source, tmp_path)
    (segment,) = tmp_path.rglob("*.log")
    segment.write_bytes(segment.read_bytes()[:-7])
    source.commit(topic("later", 9))
    assert copied(source, tmp_path) == []
    assert segments(tmp_path) == {0: bytes_of(source)}
    copied(source, tmp_path)
    assert segments(tmp_path) == {0: bytes_of(source)}


def test_what_retention_has_taken_is_reported_and_leaves_a_gap(tmp_path: Path) -> None:
    source = filled(3)
    copied(source, tmp_path)
    for number in range(3, 8):
        source.commit(topic(f"topic-{number}", number))
    source.start = 6
    (told,) = copied(source, tmp_path)
    assert "begins at 6" in told
    assert "from 3 on are missing" in told
    assert segments(tmp_path) == {0: b"".join(b.data for b in source.batches[:3]), 6: bytes_of(source, 6)}


def test_large_copies_have_several_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kquorum.cli.commands.audit.live_log.SEGMENT_BYTES", 10)
    monkeypatch.setattr("kquorum.metadata.grpc.source.SLICE_BYTES", 100)
    source = filled(4)
    copied(source, tmp_path)
    found = segments(tmp_path)
    assert list(found) == [0, 1, 2, 3]
    assert b"".join(found.values()) == bytes_of(source)


def test_what_is_committed_later_follows_through_a_lost_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kquorum.cli.commands.audit.live_log.PAUSE_SECONDS", 0.02)
    source = filled(2)
    told: list[str] = []

    async def main() -> None:
        async with serving(source) as rig:
            port = rig.server.bound_port
            copy = LiveCopy(HostPort("127.0.0.1", port), tmp_path, told.append)
            following = asyncio.create_task(copy.follow())
            await eventually(lambda: segments(tmp_path) == {0: bytes_of(source)}, "the first two")
            source.commit(topic("third", 3))
            await eventually(lambda: segments(tmp_path) == {0: bytes_of(source)}, "the third")
        await eventually(lambda: len(told) == 1, "the loss is reported")
        following.cancel()

    run(main)
    assert "trying again" in told[0]


def test_a_copy_of_another_node_or_cluster_is_refused(tmp_path: Path) -> None:
    source = filled(2)
    copied(source, tmp_path)
    source.cluster_id = "another-cluster"
    with pytest.raises(CliError, match="is a copy of node 7 of cluster kquorum-test-cluster-00") as refused:
        copied(source, tmp_path)
    assert refused.value.status is ExitStatus.FAILED


def test_without_the_right_to_fetch_there_is_no_copy(tmp_path: Path) -> None:
    gate = MemberGate(RequestAuthorizer(authorizer()), MetadataImage.empty, lambda _: "User:eve")
    with pytest.raises(CliError, match="User:eve lacks CLUSTER_ACTION") as refused:
        copied(filled(2), tmp_path, gate=gate)
    assert refused.value.status is ExitStatus.FAILED
    assert not list(tmp_path.rglob("*.log"))


def test_a_closed_port_is_reported_as_such(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(filled(1)) as rig:
            port = rig.server.bound_port
        await LiveCopy(HostPort("127.0.0.1", port), tmp_path, print).catch_up()

    with pytest.raises(CliError, match=r"127\.0\.0\.1:.*refused") as failed:
        run(main)
    assert failed.value.status is ExitStatus.UNREACHABLE


def test_names_of_files_are_never_taken_from_a_peer(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path, 1, "cluster")
    assert mirror.missing(["../../etc/passwd", "a.checkpoint", SNAPSHOT, "/x"]) == (SNAPSHOT,)


def test_an_address_is_distinguished_from_a_path() -> None:
    assert live_address("grpc://localhost:9291") == HostPort("localhost", 9291)
    assert live_address("kquorum-data/node-1") is None
    with pytest.raises(CliError):
        live_address("grpc://localhost")


@pytest.mark.parametrize(
    ("data", "size", "words"),
    [
        (b"1234", 3, "sent 4 bytes of snapshot"),
        (b"1", 2**40, "at most 17,179,869,184 are copied"),
    ],
)
def test_a_node_that_sends_more_than_it_announced_fills_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, size: int, words: str
) -> None:
    async def read_snapshot(*_: object) -> tuple[bytes, int]:
        return data, size

    source = filled(2)
    source.snapshot_files = {SNAPSHOT: data}
    monkeypatch.setattr(source, "read_snapshot", read_snapshot)
    with pytest.raises(CliError, match=words):
        copied(source, tmp_path)
    assert not (tmp_path / NODE / "__cluster_metadata-0" / SNAPSHOT).exists()
