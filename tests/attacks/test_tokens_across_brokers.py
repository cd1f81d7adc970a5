"""A delegation token that ends at one broker ends at all, also for authenticating again (KIP-368).

And at the controllers' listener, where that has SASL with SCRAM."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from kquorum.network.security.scram import ScramError
from kquorum.network.security.scram_client import ScramClient
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.apis import ApiKey
from tests.support.network.peers import RawClient
from tests.support.network.sasl_peers import ask
from tests.support.secured import PLAIN_SECRET, USER, USER_SECRET, SecuredCluster
from tests.support.single_node import HOST

pytestmark = pytest.mark.slow

MECHANISM = "SCRAM-SHA-512"
BROKERS = (101, 102)
DEADLINE_S = 60
SHORT_MS = 4_000
CONTROLLER = 1
# The nodes log in with PLAIN; SCRAM is there for clients with a token.
CONTROLLER_KEYS = {
    "listener.security.protocol.map": (
        "CONTROLLER:SASL_PLAINTEXT,TLS:SSL,PASSWORD:SASL_SSL,OPEN:SASL_PLAINTEXT"
    ),
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": f"PLAIN,{MECHANISM}",
    "listener.name.controller.plain.sasl.jaas.config": (
        f'PlainLoginModule required username="node" password="{PLAIN_SECRET}" user_node="{PLAIN_SECRET}";'
    ),
}
Token = tuple[str, bytes]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    folder = tmp_path_factory.mktemp("tokens")
    with SecuredCluster(folder, controllers=1, brokers=len(BROKERS), overrides=CONTROLLER_KEYS) as running:
        running.start()
        yield running


@asynccontextmanager
async def connected(cluster: SecuredCluster, node_id: int) -> AsyncIterator[RawClient]:
    port = cluster.ports[CONTROLLER] if node_id == CONTROLLER else cluster.listener_ports[node_id, "OPEN"]
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()


async def log_in(client: RawClient, name: str, password: str, *, is_token: bool = True) -> bool:
    """Whether the listener took the credentials."""
    scram = ScramClient(MECHANISM, name, password, is_token=is_token)
    handshake = await ask(client, ApiKey.SASL_HANDSHAKE, 1, {"mechanism": MECHANISM})
    if handshake is None or handshake.error_code != ErrorCode.none:
        return False
    first = await ask(client, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": scram.first()})
    if first is None or first.error_code != ErrorCode.none:
        return False
    return await finish(client, scram, first.auth_bytes)


async def finish(client: RawClient, scram: ScramClient, server_first: bytes) -> bool:
    last = await ask(client, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": scram.final(server_first)})
    if last is None or last.error_code != ErrorCode.none:
        return False
    try:
        scram.check(last.auth_bytes)
    except ScramError:
        return False
    return True


async def is_served(client: RawClient) -> bool:
    """False where the broker closes the connection."""
    try:
        asked = {
            "topics": None,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": False,
        }
        answer = await ask(client, ApiKey.METADATA, 12, asked)
    except ConnectionError:
        return False
    return answer is not None


async def create_token(owner: RawClient, max_lifetime_ms: int = -1) -> Token:
    values = {"owner_principal_type": None, "owner_principal_name": None, "renewers": []}
    answer = await ask(owner, ApiKey.CREATE_DELEGATION_TOKEN, 3, values | {"max_lifetime": max_lifetime_ms})
    assert answer.error_code == ErrorCode.none
    return answer.token_id, answer.hmac


async def expire(owner: RawClient, hmac: bytes) -> None:
    values = {"hmac": hmac, "expiry_time_period": -1}
    answer = await ask(owner, ApiKey.EXPIRE_DELEGATION_TOKEN, 2, values)
    assert answer.error_code == ErrorCode.none


@asynccontextmanager
async def with_token(cluster: SecuredCluster, broker_id: int, token: Token) -> AsyncIterator[RawClient]:
    """A connection that logged in with the token, as soon as this broker knows it."""
    password = password_of(token)
    async with asyncio.timeout(DEADLINE_S):
        while True:
            async with connected(cluster, broker_id) as client:
                if await log_in(client, token[0], password):
                    yield client
                    return
            await asyncio.sleep(0.05)


def password_of(token: Token) -> str:
    return base64.b64encode(bytes(token[1])).decode()


async def until_refused(client: RawClient) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while await is_served(client):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@asynccontextmanager
async def owning(cluster: SecuredCluster) -> AsyncIterator[RawClient]:
    async with connected(cluster, BROKERS[0]) as owner:
        assert await log_in(owner, USER, USER_SECRET, is_token=False)
        yield owner


def test_a_token_that_its_owner_expires_at_one_broker_ends_at_all(cluster: SecuredCluster) -> None:
    async def test() -> None:
        async with owning(cluster) as owner:
            token = await create_token(owner)
            async with (
                with_token(cluster, BROKERS[0], token) as here,
                with_token(cluster, BROKERS[1], token) as there,
                with_token(cluster, BROKERS[1], token) as again,
                connected(cluster, BROKERS[1]) as half,
            ):
                assert await is_served(here)
                assert await is_served(there)
                scram = ScramClient(MECHANISM, token[0], password_of(token), is_token=True)
                await ask(half, ApiKey.SASL_HANDSHAKE, 1, {"mechanism": MECHANISM})
                first = await ask(half, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": scram.first()})
                await expire(owner, token[1])
                await until_refused(here)
                await until_refused(there)
                # By now this broker knows. A client half way through a login is not served either, nor one that
                # authenticates again.
                await finish(half, scram, first.auth_bytes)
                assert not await is_served(half)
                assert not await log_in(again, token[0], password_of(token))
                assert not await is_served(again)
            assert await is_served(owner)
            for broker_id in BROKERS:
                async with connected(cluster, broker_id) as late:
                    assert not await log_in(late, token[0], password_of(token))

    asyncio.run(test())


def test_a_token_that_runs_out_ends_at_all(cluster: SecuredCluster) -> None:
    async def test() -> None:
        async with owning(cluster) as owner:
            token = await create_token(owner, SHORT_MS)
            async with (
                with_token(cluster, BROKERS[0], token) as here,
                with_token(cluster, BROKERS[1], token) as there,
            ):
                assert await is_served(here)
                assert await is_served(there)
                await until_refused(here)
                await until_refused(there)

    asyncio.run(test())


def test_a_connection_goes_on_with_another_token_of_its_owner(cluster: SecuredCluster) -> None:
    """And only until that one ends."""

    async def test() -> None:
        async with owning(cluster) as owner:
            first, second = await create_token(owner), await create_token(owner)
            async with (
                with_token(cluster, BROKERS[1], second),
                with_token(cluster, BROKERS[1], first) as client,
                with_token(cluster, BROKERS[1], first) as witness,
            ):
                assert await log_in(client, second[0], password_of(second))
                await expire(owner, first[1])
                await until_refused(witness)
                assert await is_served(client)
                await expire(owner, second[1])
                await until_refused(client)

    asyncio.run(test())


async def is_served_by_controller(client: RawClient) -> bool:
    try:
        asked = {"include_cluster_authorized_operations": False, "endpoint_type": 2}
        answer = await ask(client, ApiKey.DESCRIBE_CLUSTER, 1, asked)
    except ConnectionError:
        return False
    return answer is not None and answer.error_code == ErrorCode.none


def test_a_token_logs_in_at_the_controllers_listener_and_ends_there_too(cluster: SecuredCluster) -> None:
    async def test() -> None:
        async with owning(cluster) as owner:
            token = await create_token(owner)
            async with with_token(cluster, CONTROLLER, token) as at_controller:
                assert await is_served_by_controller(at_controller)
                # The controller knows that it is a token, and a token makes no tokens.
                values = {"owner_principal_type": None, "owner_principal_name": None, "renewers": []}
                answer = await ask(
                    at_controller, ApiKey.CREATE_DELEGATION_TOKEN, 3, values | {"max_lifetime": -1}
                )
                assert answer.error_code == ErrorCode.delegation_token_request_not_allowed
                for name, password in ((token[0], "no"), ("unknown", password_of(token))):
                    async with connected(cluster, CONTROLLER) as other:
                        assert not await log_in(other, name, password)
                        assert not await is_served_by_controller(other)
                await expire(owner, token[1])
                async with asyncio.timeout(DEADLINE_S):
                    while await is_served_by_controller(at_controller):  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                async with connected(cluster, CONTROLLER) as late:
                    assert not await log_in(late, token[0], password_of(token))

    asyncio.run(test())
