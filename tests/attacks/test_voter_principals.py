"""A broker's certificate that claims leadership: with kquorum.voter.principals it is refused, and the voters go on.

Without the list a principal with CLUSTER_ACTION may send BeginQuorumEpoch, as in Apache Kafka: two of them set all
controllers to the last epoch but one.
"""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from kquorum.cli.processes import wait_until
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.apis import ApiKey
from tests.support.cluster import CLUSTER_ID, ELECTION_TIMEOUT_S
from tests.support.network.peers import RawClient
from tests.support.network.sasl_peers import ask
from tests.support.secured import SecuredCluster
from tests.support.single_node import HOST

pytestmark = pytest.mark.slow

CONTROLLERS, BROKER = (1, 2, 3), 101
FAR_EPOCH = 2**31 - 2
TOPIC = "__cluster_metadata"


def name_of(node_id: int) -> str:
    return f"User:CN=node-{node_id}"


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    keys = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(name_of(node_id) for node_id in (*CONTROLLERS, BROKER)),
        "kquorum.voter.principals": ";".join(map(name_of, CONTROLLERS)),
    }
    folder = tmp_path_factory.mktemp("voter-principals")
    with SecuredCluster(folder, controllers=len(CONTROLLERS), brokers=1, overrides=keys) as running:
        running.start()
        yield running


def begin_quorum_epoch(voter_id: int, leader_id: int) -> dict[str, Any]:
    partition = {
        "partition_index": 0,
        "voter_directory_id": None,
        "leader_id": leader_id,
        "leader_epoch": FAR_EPOCH,
    }
    return {
        "cluster_id": CLUSTER_ID,
        "voter_id": voter_id,
        "topics": [{"topic_name": TOPIC, "partitions": [partition]}],
        "leader_endpoints": [],
    }


async def answer(cluster: SecuredCluster, node_id: int, certificate: str) -> Any:
    context = ssl.create_default_context(cafile=cluster.file("ca.pem"))
    context.check_hostname = False
    context.load_cert_chain(cluster.file(certificate))
    reader, writer = await asyncio.open_connection(HOST, cluster.ports[node_id], ssl=context)
    try:
        leader_id = next(each for each in CONTROLLERS if each != node_id)
        return await ask(
            RawClient(reader, writer), ApiKey.BEGIN_QUORUM_EPOCH, 1, begin_quorum_epoch(node_id, leader_id)
        )
    finally:
        writer.close()
        with suppress(OSError):  # the controller may have closed it first
            await writer.wait_closed()


def test_a_brokers_certificate_cannot_claim_leadership_and_the_voters_elect(cluster: SecuredCluster) -> None:
    for node_id in CONTROLLERS:
        refused = asyncio.run(answer(cluster, node_id, f"node-{BROKER}.pem"))
        assert refused.error_code == ErrorCode.cluster_authorization_failed
    old = cluster.leader_id()
    assert any(
        f"{name_of(BROKER)} at {HOST} is denied CLUSTER_ACTION" in cluster.log_text(each)
        for each in CONTROLLERS
    )
    cluster.kill(old)
    assert wait_until(lambda: cluster.leader_id() != old, ELECTION_TIMEOUT_S)
