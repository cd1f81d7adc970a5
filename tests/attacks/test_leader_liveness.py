"""On running nodes: no client request, however long, makes the leader lose its epoch."""

import asyncio
from collections.abc import Iterator

import pytest

from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.attacks.rig import send
from tests.support.cluster import Cluster
from tests.support.network.long_bodies import LongArray

NAMES = {
    ApiKey.DELETE_TOPICS: 199_000,
    ApiKey.CREATE_TOPICS: 199_000,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 49_000,
}
ARRAYS = {
    ApiKey.DELETE_TOPICS: "topics",
    ApiKey.CREATE_TOPICS: "topics",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "resources",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("attacked"), controllers=3, brokers=1) as running:
        running.start()
        yield running


@pytest.mark.slow
def test_the_leader_keeps_its_epoch_under_the_longest_requests(cluster: Cluster) -> None:
    cluster.leader_id()
    before = cluster.quorum()
    broker_id = next(node_id for node_id in cluster.ports if node_id not in cluster.controller_ids)

    async def attack() -> list[bytes | None]:
        requests = [
            LongArray(api_key, supported_versions(api_key)[1], (ARRAYS[api_key],)).request(count)
            for api_key, count in NAMES.items()
        ]
        ports = (cluster.ports[broker_id], cluster.ports[before.leader_id])
        return await asyncio.gather(*(send(port, request) for port in ports for request in requests))

    answers = asyncio.run(attack())
    assert all(answer is not None and b"kquorum.request.max.entries" in answer for answer in answers)
    after = cluster.quorum()
    assert (after.leader_id, after.leader_epoch) == (before.leader_id, before.leader_epoch)
