"""Controllers of ours are restarted one after the other under a broker of Kafka's, and its clients are answered.

The broker's channel to the controllers still goes to the node that led before. It looks for another one when that node
answers NOT_CONTROLLER, and only then.
"""

from collections.abc import Iterator

import pytest

from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import KafkaRelease
from tests.interop.site import QUORUM_TOOL, Layout, Site

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CONTROLLERS, BROKER = (1, 2, 3), 101
ANSWERED_WITHIN_S = 20.0


@pytest.fixture(scope="module")
def site(kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("rolling")
    layout = Layout(controllers=CONTROLLERS, brokers=(BROKER,))
    with Site(Kafka(kafka_release, folder), folder, layout) as started:
        started.format_with_ours()
        started.start_ours(*CONTROLLERS)
        started.start_kafka(BROKER)
        yield started


def restart_controllers(site: Site) -> int:
    """Each in turn, the leader last, so that it is a standby afterwards; answers who leads then."""
    before = site.quorum().leader_id
    for node_id in (*(each for each in CONTROLLERS if each != before), before):
        site.stop(node_id)
        site.await_quorum(lambda status: status.leader_id != -1)
        site.start_ours(node_id)
        site.await_quorum(
            lambda status: (
                status.leader_id != -1
                and len(status.voters) == len(CONTROLLERS)
                and all(voter.lag is not None and voter.lag <= 1 for voter in status.voters)
            )
        )
    after = site.quorum().leader_id
    assert after != before
    return after


def test_the_quorum_is_described_through_the_broker(kafka: Kafka, site: Site) -> None:
    describe = ("--bootstrap-server", site.nodes[BROKER].address, "describe", "--status")
    kafka.run(QUORUM_TOOL, *describe)
    leader_id = restart_controllers(site)
    told = kafka.run(QUORUM_TOOL, *describe, timeout_s=ANSWERED_WITHIN_S)
    assert f"LeaderId:               {leader_id}" in told
