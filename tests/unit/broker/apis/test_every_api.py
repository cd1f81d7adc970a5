"""Every API that kio knows, in every version: answered over a real socket, or not offered with a reason."""

import asyncio
from typing import Any

import pytest
from kio.schema.index import api_key_map

from kquorum.broker.apis.registry import BROKER_APIS, FORWARDED_APIS, NOT_OFFERED
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.protocol.frames import encode_frame
from tests.support.api_calls import as_read
from tests.support.broker.listening_broker import Broker, broker
from tests.support.kio.classes import request_class
from tests.support.kio.plans import plan_of
from tests.support.running_controllers import run
from tests.support.wire_values import fullest, least

KNOWN = {ApiKey(api_key) for api_key in api_key_map}
# A socket that never gets its answer would fail the test through this.
ANSWERED_WITHIN_S = 20.0
NAME = {"client_software_name": "test", "client_software_version": "1"}
# SASL's two end a connection that has none; the tests of the network ask them.
ASKED = sorted(KNOWN - NOT_OFFERED.keys() - {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})


async def offered(node: Broker) -> dict[ApiKey, tuple[int, int]]:
    answer = await node.ask(ApiKey.API_VERSIONS, NAME)
    return {ApiKey(each.api_key): (each.min_version, each.max_version) for each in answer.api_keys}


def versions(api_key: ApiKey) -> range:
    api = BROKER_APIS.get(api_key)
    lowest, highest = supported_versions(api_key) if api is None else api.versions
    return range(lowest, highest + 1)


def test_each_is_offered_in_all_versions_or_there_is_a_reason_why_not() -> None:
    async def work() -> dict[ApiKey, tuple[int, int]]:
        async with broker(lambda: None) as node:
            return await offered(node)

    told = run(work())
    assert told.keys() | NOT_OFFERED.keys() == KNOWN
    assert not told.keys() & NOT_OFFERED.keys()
    # Version 0 of SaslHandshake goes on without frames, which no client does any more.
    assert told.pop(ApiKey.SASL_HANDSHAKE) == (1, 1)
    # Kafka 4 lists versions of Produce that no broker serves (KAFKA-18659), and 6 of InitProducerId is unstable.
    assert told.pop(ApiKey.PRODUCE) == (0, supported_versions(ApiKey.PRODUCE)[1])
    assert told.pop(ApiKey.INIT_PRODUCER_ID) == (0, 5)
    assert told == {api_key: supported_versions(api_key) for api_key in told}
    assert all(len(reason) > 20 for reason in NOT_OFFERED.values())


@pytest.mark.parametrize("api_key", ASKED, ids=lambda api_key: api_key.name)
def test_every_version_of_what_is_offered_is_answered(api_key: ApiKey) -> None:
    """With the emptiest and with the fullest request that the schema allows; forwarded requests find no controller."""
    makers = [least, fullest]

    async def work() -> list[Any]:
        async with broker(lambda: None, retry_timeout_ms=50) as node:
            asked = [
                node.client.send_request(as_read(api_key, version, entity), version)
                for version in versions(api_key)
                for make in makers
                if not is_without_answer(entity := make(plan_of(request_class(api_key, version))))
            ]
            async with asyncio.timeout(ANSWERED_WITHIN_S):
                answers = await asyncio.gather(*asked)
            # The connection has survived all of them.
            assert api_key in await offered(node)
            return answers

    answers = run(work())
    assert {answer.api_key for answer in answers} == {api_key}
    assert len(answers) == len(versions(api_key)) * (1 if api_key is ApiKey.PRODUCE else 2)


@pytest.mark.parametrize(
    ("api_key", "version"), [(ApiKey.PRODUCE, 0), (ApiKey.PRODUCE, 2), (ApiKey.INIT_PRODUCER_ID, 6)]
)
def test_what_kafka_does_not_serve_either_ends_the_connection(api_key: ApiKey, version: int) -> None:
    async def work() -> bytes:
        async with broker(lambda: None) as node:
            reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
            # API, version, correlation id, client id.
            header = b"".join(each.to_bytes(2, "big") for each in (api_key, version, 0, 7, 0))
            writer.write(encode_frame(header))
            try:
                async with asyncio.timeout(ANSWERED_WITHIN_S):
                    return await reader.read()
            finally:
                writer.close()

    assert run(work()) == b""


def is_without_answer(request: Any) -> bool:
    """A producer that wants no acknowledgement loses its connection instead, as at Kafka's brokers."""
    return getattr(request, "acks", None) == 0


def test_what_is_forwarded_is_among_them() -> None:
    assert set(ASKED) >= FORWARDED_APIS
