"""How many connections are taken, in all, from one address, by one listener, and in a second."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kquorum.network import connection_quota
from kquorum.network.connection_quota import MAX_DELAY_S, ConnectionQuota, CreationRate, TooFast
from kquorum.network.limits import NO_LIMIT, ConnectionLimits, ServerLimits
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import KafkaServer, SharedLimits
from kquorum.network.server_connection import ServerConnection
from kquorum.wire.addresses import normal_address
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.protocol.frames import encode_frame
from tests.support.api_calls import response_of
from tests.support.kio.classes import request_class
from tests.support.kio.entities import build
from tests.support.kio.frames import encode_request
from tests.support.network.peers import (
    ECHO,
    HOST,
    Held,
    RawClient,
    RunTest,
    echo_handler,
    echo_request,
    header_bytes,
    holding_handler,
    raw_client,
    serving,
    until,
)

API_VERSIONS = encode_frame(header_bytes(ApiKey.API_VERSIONS, 0, 1))
HEARTBEAT = encode_frame(
    encode_request(
        ApiKey.BROKER_HEARTBEAT,
        0,
        1,
        "node",
        build(
            request_class(ApiKey.BROKER_HEARTBEAT, 0),
            {
                "broker_id": 1,
                "broker_epoch": 1,
                "current_metadata_offset": 1,
                "want_fence": False,
                "want_shut_down": False,
            },
        ),
    )
)


def answer(context: RequestContext, request: Any, reply: Reply) -> None:
    """Of ECHO, or of a heartbeat."""
    if context.header.api_key == ECHO:
        echo_handler(context, request, reply)
        return
    values = {"error_code": 0, "is_caught_up": True, "is_fenced": False, "should_shut_down": False}
    reply(response_of(ApiKey.BROKER_HEARTBEAT, 0, {"throttle_time": timedelta(), **values}))


async def is_served(client: RawClient, correlation_id: int = 1) -> bool:
    client.writer.write(echo_request("a", correlation_id))
    try:
        frame = await client.next_frame()
    except ConnectionError:
        return False
    return frame is not None


def shared(**limits: object) -> SharedLimits:
    return SharedLimits(ConnectionLimits(**limits))  # type: ignore[arg-type]


def refusals(server: KafkaServer) -> dict[str, int]:
    names = ("node_limit", "listener_limit", "address_limit", "creation_rate")
    counts = {name: getattr(server.counters, f"refused_over_{name}") for name in names}
    assert sum(counts.values()) == server.counters.refused_connections
    return {name: count for name, count in counts.items() if count}


def test_the_limit_of_a_node_holds_for_its_listeners_together(
    run: RunTest, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        together = shared(max_connections=2)
        async with (
            serving(shared=together, listener_name="ONE") as one,
            serving(shared=together, listener_name="TWO") as two,
            raw_client(one) as first,
        ):
            assert await is_served(first)
            async with raw_client(two) as second:
                assert await is_served(second)
                async with raw_client(two) as third:
                    assert await third.is_closed_by_server()
                assert refusals(two) == {"node_limit": 1}
                assert await is_served(first, 2)
            await until(lambda: together.quota.open_connections == 1)
            async with raw_client(two) as fourth:
                assert await is_served(fourth)
            assert refusals(one) == {}

    run(test())
    (record,) = caplog.records
    assert "on listener TWO: one more than `max.connections` allows" in record.getMessage()


def test_the_limit_of_a_node_does_not_hold_for_a_protected_listener(run: RunTest) -> None:
    async def test() -> None:
        together = shared(max_connections=0)
        async with serving(shared=together, is_protected=True) as server, raw_client(server) as client:
            assert await is_served(client)

    run(test())


def test_the_last_descriptors_are_for_no_connection(run: RunTest, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        limits = ServerLimits(max_open_files=3, drain_timeout_ms=200)
        async with (
            serving(limits=limits, is_protected=True) as server,
            raw_client(server) as client,
        ):
            assert await client.is_closed_by_server()
            assert refusals(server) == {"node_limit": 1}

    run(test())
    (record,) = caplog.records
    assert "one more than `ulimit -n` allows" in record.getMessage()


def test_the_limit_of_a_listener_is_its_own(run: RunTest) -> None:
    async def test() -> None:
        limits = ServerLimits(max_connections=1, drain_timeout_ms=200)
        together = SharedLimits()
        async with (
            serving(limits=limits, shared=together) as small,
            serving(shared=together) as large,
            raw_client(small) as first,
            raw_client(large) as other,
        ):
            assert await is_served(first)
            assert await is_served(other)
            async with raw_client(small) as second:
                assert await second.is_closed_by_server()
            assert refusals(small) == {"listener_limit": 1}
            assert refusals(large) == {}

    run(test())


@pytest.mark.parametrize("full", ["listener", "node", "descriptors"])
def test_a_full_listener_of_controllers_closes_the_connection_that_was_idle_for_longest(
    run: RunTest, full: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Idle connections would keep out a broker that connects again, for as long as they stay."""

    async def test() -> None:
        most = 2 if full == "listener" else NO_LIMIT
        limits = ServerLimits(evicts_after_idle_ms=0, drain_timeout_ms=200, max_connections=most)
        together = shared(max_connections=2) if full == "node" else SharedLimits()
        held: Held = []
        async with (
            serving(holding_handler(held), limits=limits, shared=together) as server,
            raw_client(server) as busy,
            raw_client(server) as idle,
        ):
            busy.writer.write(echo_request("a", 1))
            await until(lambda: len(held) == 1 and server.counters.open_connections == 2)
            if full == "descriptors":
                server._state.limits = replace(limits, max_open_files=3)
            async with raw_client(server) as new:
                assert await idle.is_closed_by_server()
                new.writer.write(echo_request("b", 2))
                await until(lambda: len(held) == 2)
            assert refusals(server) == {}
            assert server.counters.idle_connections_closed == 1

    run(test())
    (record,) = caplog.records
    assert "it has asked nothing yet, and the listener is full" in record.getMessage()


def test_a_full_listener_closes_one_that_never_asked_anything_before_one_that_is_idle(run: RunTest) -> None:
    """ApiVersions again and again, or pieces of a frame, are no reason to stay."""

    async def test() -> None:
        limits = ServerLimits(max_connections=3, evicts_after_idle_ms=0, drain_timeout_ms=200)
        async with (
            serving(limits=limits) as server,
            raw_client(server) as idle,
            raw_client(server) as greets,
            raw_client(server) as drips,
        ):
            assert await is_served(idle)
            for peer in (greets, drips):
                peer.writer.write(API_VERSIONS)
                await peer.next_frame()
            drips.writer.write(echo_request("a", 1)[:9])
            await until(
                lambda: any(
                    isinstance(each, ServerConnection) and each._received.half_read_bytes
                    for each in server._state.connections
                )
            )
            async with raw_client(server) as first, raw_client(server) as second:
                assert await greets.is_closed_by_server()
                assert await drips.is_closed_by_server()
                assert await is_served(first)
                assert await is_served(second)
            assert await is_served(idle, 2)

    run(test())


def test_a_full_listener_closes_clients_before_nodes(run: RunTest) -> None:
    async def test() -> None:
        limits = ServerLimits(max_connections=2, evicts_after_idle_ms=0, drain_timeout_ms=200)
        supported = {ECHO: (0, 3), ApiKey.BROKER_HEARTBEAT: (0, 0)}
        async with (
            serving(answer, limits=limits, supported=supported) as server,
            raw_client(server) as node,
            raw_client(server) as client,
        ):
            node.writer.write(HEARTBEAT)
            await node.next_frame()
            # The node is idle for longer: uvloop's clock has milliseconds.
            loop = asyncio.get_running_loop()
            heard_at_s = loop.time()
            await until(lambda: loop.time() > heard_at_s + 0.001)
            assert await is_served(client)
            async with raw_client(server) as new:
                assert await client.is_closed_by_server()
                assert await is_served(new)
            node.writer.write(HEARTBEAT)
            assert await node.next_frame() is not None

    run(test())


def test_a_full_listener_refuses_where_nothing_is_idle_for_long_enough(run: RunTest) -> None:
    async def test() -> None:
        limits = ServerLimits(max_connections=1, evicts_after_idle_ms=3_600_000, drain_timeout_ms=200)
        async with serving(limits=limits) as server, raw_client(server) as first:
            assert await is_served(first)
            async with raw_client(server) as second:
                assert await second.is_closed_by_server()
            assert await is_served(first, 2)
            assert refusals(server) == {"listener_limit": 1}

    run(test())


@pytest.mark.parametrize(
    "limits",
    [{"max_connections_per_address": 1}, {"max_connections_per_address": 0, "overrides": {HOST: 1}}],
)
def test_an_address_has_a_limit_of_its_own(run: RunTest, limits: dict[str, object]) -> None:
    async def test() -> None:
        together = shared(**limits)
        async with serving(shared=together) as server:
            async with raw_client(server) as first:
                assert await is_served(first)
                async with raw_client(server) as second:
                    assert await second.is_closed_by_server()
                assert await is_served(first, 2)
            await until(lambda: together.quota.open_connections == 0)
            async with raw_client(server) as again:
                assert await is_served(again)
            assert refusals(server) == {"address_limit": 1}

    run(test())


def test_refused_connections_leave_the_counts_as_they_were(run: RunTest) -> None:
    async def test() -> None:
        together = shared(max_connections=1)
        async with serving(shared=together) as server, raw_client(server) as first:
            assert await is_served(first)
            for _ in range(30):
                async with raw_client(server) as refused:
                    assert await refused.is_closed_by_server()
            await until(lambda: server.counters.open_connections == 1)
            assert together.quota.open_connections == 1
            assert refusals(server) == {"node_limit": 30}

    run(test())


class AtOnce:
    """A rate to which all connections come in one moment, however long the test takes for them."""

    def __init__(self, rate: CreationRate, before: int = 0) -> None:
        """`before` connections have come already."""
        self._rate = rate
        for _ in range(before):
            self.delay_s(0.0)

    def delay_s(self, _now_s: float) -> float | None:
        return self._rate.delay_s(100.0)


def all_at_once(server: KafkaServer, before: int = 0) -> None:
    rate: Any = AtOnce(server._state.rate, before)
    server._state.rate = rate


def test_connections_that_come_too_fast_wait_for_their_place(run: RunTest) -> None:
    async def test() -> None:
        limits = ServerLimits(max_connection_creation_rate=10, drain_timeout_ms=200)
        async with serving(limits=limits) as server:
            all_at_once(server)
            loop = asyncio.get_running_loop()
            for number in range(12):
                began_s = loop.time()
                async with raw_client(server) as client:
                    assert await is_served(client, number)
                assert number < 10 or loop.time() - began_s >= 0.1 * (number - 9) - 0.01
            assert server.counters.delayed_connections == 2
            assert refusals(server) == {}

    run(test())


def test_without_a_place_in_bearable_time_a_connection_is_refused(run: RunTest) -> None:
    async def test() -> None:
        async with (
            serving(shared=shared(max_connection_creation_rate=0)) as server,
            raw_client(server) as client,
        ):
            assert await client.is_closed_by_server()
            assert refusals(server) == {"creation_rate": 1}

    run(test())


def test_a_delayed_connection_that_the_stop_finds_is_closed(run: RunTest) -> None:
    async def test() -> None:
        limits = ServerLimits(max_connection_creation_rate=1, drain_timeout_ms=200)
        async with serving(limits=limits) as server:
            all_at_once(server, before=10)  # so it is to wait for ten seconds
            async with raw_client(server) as delayed:
                await until(lambda: server.counters.delayed_connections == 1)
                await server.stop()
                assert await delayed.is_closed_by_server()
                assert server.counters.open_connections == 0

    run(test())


def test_the_rate_gives_places_of_one_second_at_once_and_then_one_by_one() -> None:
    rate = CreationRate(4)
    delays = [rate.delay_s(100.0) for _ in range(6)]
    assert delays == [0.0, 0.0, 0.0, 0.0, 0.25, 0.5]
    assert rate.delay_s(100.75) == pytest.approx(0.0)
    assert [rate.delay_s(200.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.0, 0.25]


def test_the_rate_gives_no_place_farther_off_than_a_client_would_wait() -> None:
    rate = CreationRate(1)
    delays = [rate.delay_s(0.0) for _ in range(13)]
    assert max(delay for delay in delays if delay is not None) <= MAX_DELAY_S
    assert delays[-1] is None
    assert rate.delay_s(5.0) is not None, "those without a place take none"


def test_without_a_rate_no_client_is_delayed() -> None:
    rate = CreationRate(NO_LIMIT)
    assert {rate.delay_s(1.0) for _ in range(1000)} == {0.0}


@pytest.mark.parametrize(
    ("host", "normal"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("FE80::1%eth0", "fe80::1"),
        ("unknown", "unknown"),
    ],
)
def test_an_address_has_one_text(host: str, normal: str) -> None:
    assert normal_address(host) == normal


def quota_of(rates: dict[str, float]) -> ConnectionQuota:
    quota = ConnectionQuota(ConnectionLimits())
    quota.rate_of_address = rates.get
    return quota


def test_an_address_with_a_quota_opens_so_many_connections_a_second() -> None:
    rates = {"1.1.1.1": 4.0}
    quota = quota_of(rates)
    assert [quota.too_fast("1.1.1.1", 100.0) for _ in range(4)] == [None] * 4
    assert quota.too_fast("1.1.1.1", 100.0) == TooFast(0.25)
    assert quota.too_fast("1.1.1.1", 100.0) == TooFast(0.25), "one that is refused takes no place"
    assert quota.too_fast("2.2.2.2", 100.0) is None
    assert quota.too_fast("1.1.1.1", 100.25) is None
    rates["1.1.1.1"] = 2.0
    assert quota.too_fast("1.1.1.1", 100.25) is None, "a change counts at once"
    del rates["1.1.1.1"]
    assert all(quota.too_fast("1.1.1.1", 100.25) is None for _ in range(100))


def test_rates_are_kept_of_so_many_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_quota, "ADDRESSES_KEPT", 3)
    quota = ConnectionQuota(ConnectionLimits())
    quota.rate_of_address = lambda _address: 1.0
    quota.too_fast("busy", 100.0)
    for number in range(10):
        assert quota.too_fast(f"address-{number}", 100.0) is None
        assert quota.too_fast("busy", 100.0) is not None
    assert len(quota._rates) == 3


def test_a_connection_that_comes_too_fast_is_closed_after_its_delay(
    run: RunTest, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        together = SharedLimits()
        together.quota.rate_of_address = lambda _address: 5.0
        async with serving(shared=together) as server:
            together.quota.too_fast(HOST, 1e9)
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            async with raw_client(server) as refused:
                refused.writer.write(echo_request("a", 1))
                await until(lambda: together.quota.open_connections == 1)
                assert await refused.is_closed_by_server()
            assert loop.time() - began_s >= 0.2
            await until(lambda: together.quota.open_connections == 0)
            assert server.counters.requests == 0
            assert refusals(server) == {"creation_rate": 1}
            together.quota.rate_of_address = lambda _address: None
            async with raw_client(server) as client:
                assert await is_served(client)

    run(test())
    (record,) = caplog.records
    assert "faster than the quota `connection_creation_rate` of its address allows" in record.getMessage()
