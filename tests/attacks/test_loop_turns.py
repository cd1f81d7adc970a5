"""Whatever comes, no turn of the loop does more than some tens of milliseconds of work: counted in calls, not in time.

`python -m tests.attacks` measures every array of every API; here are those that held the loop for a second, and with
them each API's longest array.
"""

import asyncio
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.image.configs import TOPIC
from kquorum.network.requests import ANONYMOUS
from kquorum.wire.messages.describe_configs import DescribeConfigsRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.protocol.headers import decode_response
from tests.attacks.rig import Rig, rig, send
from tests.support.acl_worlds import PREFIXED, acl
from tests.support.api_calls import request_of
from tests.support.kio.frames import encode_request
from tests.support.network.long_bodies import long_arrays, long_request
from tests.support.node.loop_turns import Turns, measured

# About fifty milliseconds.
MOST_CALLS = 250_000
NAMES = 4_000
# More than a broker takes of what Kafka's tools do not divide (metadata.adapters.request_bounds).
MANY_NAMES = 22_000


def newest(api_key: ApiKey, values: dict[str, Any]) -> bytes:
    version = supported_versions(api_key)[1]
    return encode_request(api_key, version, 1, "attacker", request_of(api_key, version, values))


async def calls_of(built: Rig, turns: Turns, server: str, request: bytes) -> tuple[int, bytes | None]:
    await asyncio.sleep(0)  # what this turn has done so far is the test's own work
    turns.reset()
    answer = await send(built.servers[server].bound_port, request)
    return turns.most_calls, answer


ATTACKS = {
    "DeleteTopics": (ApiKey.DELETE_TOPICS, ("topics",)),
    "CreateTopics": (ApiKey.CREATE_TOPICS, ("topics",)),
    "IncrementalAlterConfigs": (ApiKey.INCREMENTAL_ALTER_CONFIGS, ("resources",)),
    "CreatePartitions": (ApiKey.CREATE_PARTITIONS, ("topics",)),
    "DescribeConfigs": (ApiKey.DESCRIBE_CONFIGS, ("resources",)),
    "DeleteAcls": (ApiKey.DELETE_ACLS, ("filters",)),
}


def test_a_user_without_acls_holds_no_client_up_with_a_long_request(tmp_path: Path) -> None:
    """One DeleteTopics of 199,000 names once deposed the controller, sent directly or through a broker."""

    async def work() -> None:
        with measured(counts_calls=True) as turns:
            async with rig(tmp_path, topics=20, allows_clients=False) as built:
                for attack, server in product(ATTACKS, built.servers):
                    count = MANY_NAMES if attack == "DescribeConfigs" else NAMES
                    request = await asyncio.to_thread(long_request, *ATTACKS[attack], count)
                    calls, answer = await calls_of(built, turns, server, request)
                    assert answer is not None, "such a request is refused with an answer"
                    assert b"kquorum.request.max.entries" in answer
                    assert calls < MOST_CALLS, (attack, server, turns.what)

    asyncio.run(work())


@pytest.mark.parametrize("allows_clients", [True, False])
def test_the_configs_of_very_many_topics_are_reported_beside_the_loop(
    tmp_path: Path, allows_clients: bool
) -> None:
    """kafka-topics --describe asks a broker for those of all topics at once."""

    async def work() -> None:
        with measured(counts_calls=True) as turns:
            async with rig(tmp_path, topics=20, allows_clients=allows_clients) as built:
                request = await asyncio.to_thread(long_request, *ATTACKS["DescribeConfigs"], 9_900)
                calls, answer = await calls_of(built, turns, "broker", request)
                assert answer is not None
                assert b"kquorum.request.max.entries" not in answer
                assert calls < MOST_CALLS, turns.what

    asyncio.run(work())


def test_the_rights_to_very_many_configs_are_judged_in_slices(tmp_path: Path) -> None:
    """19,000 refusals in a request took a broker 63 to 94 ms of one turn."""

    async def work() -> None:
        names = [
            {"resource_type": 2, "resource_name": f"t{number}", "configuration_keys": None}
            for number in range(19_900)
        ]
        values = {"resources": names, "include_synonyms": False, "include_documentation": False}
        request = newest(ApiKey.DESCRIBE_CONFIGS, values)
        with measured(counts_calls=True) as turns:
            async with rig(tmp_path, topics=20, allows_clients=False) as built:
                calls, answer = await calls_of(built, turns, "broker", request)
                assert answer is not None
                assert b"t19899" in answer
                assert calls < MOST_CALLS // 4, turns.what[:200]

    asyncio.run(work())


@pytest.mark.parametrize("server", ["controller", "broker"])
def test_configs_of_which_some_are_refused_are_described_in_slices(tmp_path: Path, server: str) -> None:
    """One refused resource of 1,900 made a controller build the answer in one piece: a million calls and more."""
    api_key, count = ApiKey.DESCRIBE_CONFIGS, 1_900
    version = supported_versions(api_key)[1]
    # Of each four: one is described, two do not exist, and one is refused.
    names = [("t1", "t1 missing", f"t1{each}x", f"t2{each}")[each % 4] for each in range(count)]
    resources = [
        {"resource_type": TOPIC, "resource_name": name, "configuration_keys": None} for name in names
    ]
    values = {"resources": resources, "include_synonyms": False, "include_documentation": False}

    async def work() -> None:
        with measured(counts_calls=True) as turns:
            async with rig(tmp_path, topics=20, allows_clients=False) as built:
                built.allow(acl(Operation.DESCRIBE_CONFIGS, "t1", principal=ANONYMOUS, pattern_type=PREFIXED))
                calls, answer = await calls_of(built, turns, server, newest(api_key, values))
                assert answer is not None
                assert calls < MOST_CALLS // 4, turns.what[:200]
                results = decode_response(DescribeConfigsRequest, version, answer).results
                codes = Counter(each.error_code for each in results)
                assert codes == {
                    ErrorCode.none: count // 4,
                    ErrorCode.invalid_topic_exception: count // 4,
                    ErrorCode.unknown_topic_or_partition: count // 4,
                    ErrorCode.topic_authorization_failed: count // 4,
                }

    asyncio.run(work())


def test_without_cluster_action_a_request_is_refused_before_its_body_is_read(tmp_path: Path) -> None:
    """An AlterPartition of 30 MB was once decoded before the authorizer checked it."""

    async def work() -> None:
        with measured(counts_calls=True) as turns:
            async with rig(tmp_path, topics=20, allows_clients=False) as built:
                header = long_request(ApiKey.ALTER_PARTITION, ("topics",), 1)
                unreadable = header[:30] + b"\xff" * 1_000_000
                calls, answer = await calls_of(built, turns, "controller", unreadable)
                # CLUSTER_AUTHORIZATION_FAILED, of a body that cannot be read.
                assert answer is not None
                assert (31).to_bytes(2, "big") in answer
                assert calls < 10_000

    asyncio.run(work())


def test_what_a_request_of_an_api_may_weigh_is_known_from_its_first_bytes(tmp_path: Path) -> None:
    """A heartbeat has no 30 MB: the connection ends before they have come."""

    async def work() -> None:
        async with rig(tmp_path, topics=1) as built:
            reader, writer = await asyncio.open_connection("127.0.0.1", built.controller.bound_port)
            heartbeat = long_request(ApiKey.BROKER_HEARTBEAT, ("offline_log_dirs",), 1)
            writer.write((30_000_000).to_bytes(4, "big") + heartbeat)
            assert await reader.read() == b""
            assert built.controller.counters.bad_frames == 1
            writer.close()

    asyncio.run(work())


def asked(api_key: ApiKey, values: dict[str, Any]) -> bytes:
    return newest(api_key, {"timeout": 60_000, "timeout_ms": 60_000, "validate_only": False} | values)


def new_topic(name: str, partitions: int) -> dict[str, Any]:
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 3,
        "assignments": (),
        "configs": (),
    }


def test_one_topic_of_very_many_partitions_is_made_in_a_short_turn(tmp_path: Path) -> None:
    """It cannot be decided in parts. So large a topic took more than twice as many calls."""
    creation = {"topics": [new_topic("new", 9_900)]}
    growth = {"topics": [{"name": "t0", "count": 9_902, "assignments": None}]}

    async def work() -> None:
        with measured(counts_calls=True) as turns:
            async with rig(tmp_path, topics=1) as built:
                for api_key, values in ((ApiKey.CREATE_TOPICS, creation), (ApiKey.CREATE_PARTITIONS, growth)):
                    calls, answer = await calls_of(built, turns, "controller", asked(api_key, values))
                    assert answer is not None
                    assert calls < MOST_CALLS, (api_key, turns.what)
                topics = built.world.controller.committed_image.topics.by_name
                assert {name: len(topic.partitions) for name, topic in topics.items()} == {
                    "new": 9_900,
                    "t0": 9_902,
                }

    asyncio.run(work())


def test_valid_requests_of_many_entries_are_decided_in_parts(tmp_path: Path) -> None:
    creation = {"topics": [new_topic(f"new{each}", 2) for each in range(600)]}
    growth = {"topics": [{"name": f"new{each}", "count": 4, "assignments": None} for each in range(600)]}

    async def work() -> None:
        with measured(counts_calls=True) as turns:
            async with rig(tmp_path, topics=1) as built:
                for api_key, values in ((ApiKey.CREATE_TOPICS, creation), (ApiKey.CREATE_PARTITIONS, growth)):
                    calls, answer = await calls_of(built, turns, "controller", asked(api_key, values))
                    assert answer is not None
                    assert calls < MOST_CALLS, (api_key, turns.what)
                topics = built.world.controller.committed_image.topics.by_name
                assert len(topics) == 601
                assert {len(topic.partitions) for topic in topics.values()} == {2, 4}

    asyncio.run(work())


@pytest.mark.slow
@pytest.mark.parametrize("allows_clients", [True, False])
def test_no_array_of_any_api_holds_the_loop_up(tmp_path: Path, allows_clients: bool) -> None:
    async def work() -> None:
        with measured(counts_calls=True) as turns:
            async with rig(tmp_path, topics=20, allows_clients=allows_clients) as built:
                for name, server in built.servers.items():
                    for key, (_, highest) in server._state.supported.items():
                        for array in long_arrays(ApiKey(key), highest):
                            for count in (1_900, NAMES):
                                request = await asyncio.to_thread(array.request, count)
                                calls, _ = await calls_of(built, turns, name, request)
                                assert calls < MOST_CALLS, f"{name}: {array} of {count}: {turns.what}"

    asyncio.run(work())
