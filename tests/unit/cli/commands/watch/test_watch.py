"""`kquorum watch`: its lines, and its stream across lost connections, against a real gRPC server over a fake node."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from kquorum.cli.commands.watch.command import watch
from kquorum.cli.commands.watch.lines import json_line, text_line
from kquorum.cli.commands.watch.stream import ChangeStream
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.metadata.grpc.server import InspectServer, start_inspect_server
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.errors import ConfigError
from kquorum.wire.metadata_records.cluster import BrokerRegistrationChangeRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.proto import inspect_pb2 as pb
from tests.support.grpc_harness import run
from tests.support.grpc_source import FakeSource, partition, register_broker, topic, topic_id


def filled_source() -> FakeSource:
    """Offsets: 0 and 1 brokers, 2 topic, 3 partition."""
    source = FakeSource()
    source.commit(register_broker(1), register_broker(2, fenced=True))
    source.commit(topic("orders", 1), partition(1))
    return source


async def serve(source: FakeSource, port: int = 0) -> InspectServer:
    return await start_inspect_server("127.0.0.1", port, source)


def stream_from(
    *ports: int, told: list[str], from_offset: int | None = None, kinds: tuple[str, ...] = ()
) -> AsyncGenerator[pb.Change]:
    addresses = [HostPort("127.0.0.1", port) for port in ports]
    return ChangeStream(
        addresses, from_offset=from_offset, kinds=kinds, timeout_ms=300, tell=told.append
    ).changes()


async def places(changes: AsyncGenerator[pb.Change], count: int) -> list[tuple[int, str]]:
    found = []
    for _ in range(count):
        change = await anext(changes)
        found.append((change.offset, pb.ChangeKind.Name(change.kind)))
    return found


def test_the_stream_goes_on_at_the_same_node_after_its_restart() -> None:
    told: list[str] = []

    async def main() -> list[tuple[int, str]]:
        source = filled_source()
        server = await serve(source)
        changes = stream_from(server.bound_port, told=told, from_offset=2)
        found = await places(changes, 3)
        await server.stop()
        source.commit(topic("while-away", 2))
        server = await serve(source, server.bound_port)
        source.commit(topic("later", 3))
        found += await places(changes, 2)
        await changes.aclose()
        await server.stop()
        return found

    assert run(main) == [
        (1, "INITIAL_STATE"),
        (2, "TOPIC_CREATED"),
        (3, "PARTITION_CREATED"),
        (4, "TOPIC_CREATED"),
        (5, "TOPIC_CREATED"),
    ]
    assert "node 7 is stopping" in told[0]
    assert "going on from offset 3" in told[-1]


def test_another_node_takes_over_without_gap_or_repetition() -> None:
    """The connection is lost between two changes made by one record."""
    told: list[str] = []

    async def main() -> list[tuple[int, str]]:
        source = filled_source()
        servers = [await serve(source), await serve(source)]
        changes = stream_from(*(server.bound_port for server in servers), told=told)
        found = await places(changes, 1)
        source.commit(
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=0, fenced=1, in_controlled_shutdown=1)
        )
        found += await places(changes, 1)
        await servers[0].stop()
        found += await places(changes, 1)
        source.commit(topic("later", 3))
        found += await places(changes, 1)
        await changes.aclose()
        await servers[1].stop()
        return found

    assert run(main) == [
        (3, "INITIAL_STATE"),
        (4, "BROKER_IN_CONTROLLED_SHUTDOWN"),
        (4, "BROKER_FENCED"),
        (5, "TOPIC_CREATED"),
    ]


def test_a_node_that_dies_while_it_is_watched_is_not_said_to_want_tls() -> None:
    """The kernel of a killed process closes its connections. What a listener with TLS does looks the same, but not
    after an answer."""
    told: list[str] = []

    async def main() -> list[tuple[int, str]]:
        source = filled_source()
        servers = [await serve(source), await serve(source)]
        relay = await Relay.to(servers[0].bound_port)
        changes = stream_from(relay.port, servers[1].bound_port, told=told)
        found = await places(changes, 1)
        source.commit(topic("before", 3))
        found += await places(changes, 1)
        relay.die()
        await_next = asyncio.ensure_future(anext(changes))
        while len(told) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        source.commit(topic("later", 4))
        found.append(((await await_next).offset, "later"))
        await changes.aclose()
        for server in servers:
            await server.stop()
        return found

    assert run(main) == [(3, "INITIAL_STATE"), (4, "TOPIC_CREATED"), (5, "later")]
    assert "lost the stream from 127.0.0.1:" in told[0]
    assert "(it closed the connection)" in told[0]
    assert "TLS" not in told[0]


class Relay:
    """A port that passes everything on to another, until it dies like a process."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server

    @classmethod
    async def to(cls, target: int) -> "Relay":
        relay = cls(target)
        relay._server = await asyncio.start_server(relay._serve, "127.0.0.1", 0)
        return relay

    @property
    def port(self) -> int:
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def die(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers += [writer, far_writer]
        await asyncio.gather(self._pass_on(reader, far_writer), self._pass_on(far_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            return


def test_only_the_kinds_asked_for_are_streamed() -> None:
    async def main() -> list[tuple[int, str]]:
        server = await serve(filled_source())
        changes = stream_from(server.bound_port, told=[], from_offset=0, kinds=("PARTITION_CREATED",))
        found = await places(changes, 2)
        await changes.aclose()
        await server.stop()
        return found

    assert run(main) == [(-1, "INITIAL_STATE"), (3, "PARTITION_CREATED")]


def test_changes_that_can_no_longer_be_told_are_reported_and_the_watch_goes_on() -> None:
    told: list[str] = []

    async def main() -> list[tuple[int, str]]:
        source = filled_source()
        server = await serve(source)
        changes = stream_from(server.bound_port, told=told)
        found = await places(changes, 1)
        await server.stop()
        source.commit(topic("while-away", 2))
        source.start = 5
        server = await serve(source, server.bound_port)
        await_next = asyncio.ensure_future(anext(changes))
        while not any("going on from offset 5" in line for line in told):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        source.commit(topic("later", 3))
        last = await await_next
        await changes.aclose()
        await server.stop()
        return [*found, (last.offset, last.topic.name)]

    assert run(main) == [(3, "INITIAL_STATE"), (5, "later")]
    assert any("changes were missed" in line and "offset 4" in line for line in told)


def test_a_node_of_another_cluster_ends_the_watch() -> None:
    async def main() -> str:
        source, other = filled_source(), filled_source()
        other.cluster_id = "another-cluster"
        first, second = await serve(source), await serve(other)
        changes = stream_from(first.bound_port, second.bound_port, told=[])
        await places(changes, 1)
        await first.stop()
        with pytest.raises(CliError) as caught:
            await anext(changes)
        await second.stop()
        return str(caught.value)

    message = run(main)
    assert "another-cluster" in message
    assert "kquorum-test-cluster-00" in message


def test_no_answer_is_reported_with_the_addresses_tried() -> None:
    async def main() -> CliError:
        server = await serve(FakeSource())
        await server.stop()
        with pytest.raises(CliError) as caught:
            await anext(stream_from(server.bound_port, told=[]))
        assert str(server.bound_port) in str(caught.value)
        return caught.value

    error = run(main)
    assert error.status is ExitStatus.UNREACHABLE
    assert "connection refused" in str(error)


def test_an_offset_far_ahead_is_a_usage_error() -> None:
    async def main() -> CliError:
        server = await serve(filled_source())
        with pytest.raises(CliError) as caught:
            await anext(stream_from(server.bound_port, told=[], from_offset=99_999_999))
        await server.stop()
        return caught.value

    error = run(main)
    assert error.status is ExitStatus.USAGE
    assert "99999999" in str(error)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"grpc": "nowhere"}, "'nowhere' is not host:port"),
        ({"grpc": "a:1", "node": 1}, "does not go with --grpc"),
        ({"grpc": "a:1", "kind": ["topic_create"]}, "did you mean topic_created?"),
    ],
)
def test_wrong_options_are_refused_with_a_hint(options: dict[str, object], words: str) -> None:
    import typer

    with pytest.raises((typer.BadParameter, CliError)) as caught:
        watch(**options)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_a_config_without_the_node_or_its_listener_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "quorum.toml"
    config.write_text(
        '[cluster]\ncluster.id = "a3F1b3J1bS1leGFtcGxlMQ"\n[[nodes]]\nnode.id = 1\n'
        'process.roles = "controller"\ncontroller.listener.names = "CONTROLLER"\n'
        'listeners = "CONTROLLER://127.0.0.1:9191"\nlog.dirs = "data"\n'
    )
    with pytest.raises(CliError, match=r"no node has a `kquorum.grpc\.listener`"):
        watch(config=config)
    with pytest.raises(CliError, match=r"node 1 has no `kquorum.grpc\.listener`"):
        watch(config=config, node=1)
    with pytest.raises(ConfigError, match="there is no node 5"):
        watch(config=config, node=5)


def one_change() -> pb.Change:
    async def main() -> pb.Change:
        source = filled_source()
        server = await serve(source)
        changes = stream_from(server.bound_port, told=[])
        await anext(changes)
        source.commit(PartitionChangeRecord(partition_id=0, topic_id=topic_id(1), leader=2, isr=(2,)))
        change = await anext(changes)
        await changes.aclose()
        await server.stop()
        return change

    return run(main)


def test_a_line_for_the_eye_says_what_became_of_what() -> None:
    text = text_line(one_change()).plain
    assert text.startswith("2023-11-14 22:13:20.004")
    assert "partition changed" in text
    assert "orders-0  leader 1 -> 2  isr 1,2 -> 2  leader epoch 0 -> 1  partition epoch 1" in text
    assert "replicas" not in text


def test_a_json_line_has_every_field_also_zeros() -> None:
    fields = json.loads(json_line(one_change()))
    assert (fields["kind"], fields["offset"], fields["epoch"]) == ("partition_changed", 4, 3)
    assert fields["partition"]["partition_id"] == 0
    assert fields["partition"]["leader"] == 2
    assert fields["partition"]["adding_replicas"] == []
    assert fields["previous"]["isr"] == [1, 2]
    assert "previous" not in json.loads(json_line(pb.Change(kind=pb.TOPIC_CREATED, topic=pb.Topic(name="a"))))


def test_a_leader_and_voters_in_words_and_in_json() -> None:
    elected = pb.Change(
        kind=pb.LEADER_ELECTED,
        offset=70,
        epoch=4,
        timestamp_ms=0,
        leader=pb.Leader(id=2, voters=[1, 2, 3], granting_voters=[1, 2]),
    )
    assert "leader elected" in text_line(elected).plain
    assert "node 2 leads the quorum in epoch 4  voters 1,2,3  voted for it: 1,2" in text_line(elected).plain
    assert json.loads(json_line(elected))["leader"] == {
        "id": 2,
        "epoch": 4,
        "voters": [1, 2, 3],
        "granting_voters": [1, 2],
    }
    voter = pb.Voter(id=4, directory_id="abc", endpoints=[pb.Endpoint(name="C", host="h", port=9193)])
    changed = pb.Change(kind=pb.VOTERS_CHANGED, offset=71, epoch=4, voters=pb.Voters(voters=[voter]))
    assert text_line(changed).plain.endswith("the voters are 4 at h:9193 (directory abc)")
    assert json.loads(json_line(changed))["voters"] == {
        "voters": [{"id": 4, "directory_id": "abc", "endpoints": [{"name": "C", "host": "h", "port": 9193}]}]
    }


@pytest.mark.parametrize(
    ("timestamp_ms", "shown"),
    [(0, "1970-01-01 00:00:00.000 "), (-1, " " * 24), (2**62, f"{2**62} ")],
)
def test_a_time_that_no_calendar_has_is_shown_as_its_number(timestamp_ms: int, shown: str) -> None:
    change = one_change()
    change.timestamp_ms = timestamp_ms
    assert text_line(change).plain.startswith(shown)
