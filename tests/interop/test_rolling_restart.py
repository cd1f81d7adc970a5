"""Controllers of ours are restarted one after the other under a broker of Kafka's, and every tool is still answered.

The broker's channel to the controllers still goes to the node that led before. It looks for another one when that node
answers NOT_CONTROLLER, and only then (docs/standby.md).
"""

from collections.abc import Callable, Iterator, Sequence

import pytest

from kquorum.cli.main import run as run_kquorum
from tests.interop.kafka_process import Kafka, ToolHangs
from tests.interop.kafka_release import KafkaRelease
from tests.interop.site import QUORUM_TOOL, Layout, Site

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CONTROLLERS, KAFKAS, OURS, GONE = (1, 2, 3), 101, 102, (103, 104)
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ANSWERED_WITHIN_S = 20.0

TOOLS = "org.apache.kafka.tools"
TOPIC = ("--entity-type", "topics", "--entity-name", "orders")


@pytest.fixture(scope="module")
def site(kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker of Kafka's and one of ours, and two that are registered and stopped."""
    folder = tmp_path_factory.mktemp("rolling")
    layout = Layout(controllers=CONTROLLERS, brokers=(KAFKAS, OURS, *GONE), kafkas=AUTHORIZER)
    with Site(Kafka(kafka_release, folder), folder, layout) as started:
        started.format_with_ours()
        started.start_ours(*CONTROLLERS)
        started.start_ours(OURS, *GONE)
        started.stop(*GONE)
        started.start_kafka(KAFKAS)
        started.create_topic("orders", KAFKAS)
        yield started


def through_broker(site: Site) -> tuple[str, str]:
    return "--bootstrap-server", site.nodes[KAFKAS].address


def at_controllers(site: Site) -> tuple[str, str]:
    return "--bootstrap-controller", ",".join(site.nodes[node_id].address for node_id in CONTROLLERS)


def restart(site: Site, node_id: int) -> None:
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


@pytest.fixture
def stale(kafka: Kafka, site: Site) -> int:
    """The broker has asked the leader, which was restarted then and follows another one; answers who leads now."""
    try:
        kafka.run(QUORUM_TOOL, *through_broker(site), "describe", "--status", timeout_s=ANSWERED_WITHIN_S)
    except ToolHangs as error:
        raise AssertionError(f"{error}\n{site.tails()}") from None
    before = site.quorum().leader_id
    restart(site, before)
    after = site.quorum().leader_id
    assert after != before
    return after


def test_the_quorum_is_described_after_all_controllers_were_restarted(
    kafka: Kafka, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    for where in (through_broker(site), at_controllers(site)):
        kafka.run(QUORUM_TOOL, *where, "describe", "--status")
    before = site.quorum().leader_id
    for node_id in (*(each for each in CONTROLLERS if each != before), before):
        restart(site, node_id)
    leader_id = site.quorum().leader_id
    assert leader_id != before
    for where in (through_broker(site), at_controllers(site)):
        told = kafka.run(QUORUM_TOOL, *where, "describe", "--status", timeout_s=ANSWERED_WITHIN_S)
        assert f"LeaderId:               {leader_id}" in told
    for broker_id in (KAFKAS, OURS):
        capsys.readouterr()
        address = site.nodes[broker_id].address
        assert run_kquorum(["quorum", "status", "--bootstrap-server", address, "--json"]) == 0
        assert f'"leader_id": {leader_id},' in capsys.readouterr().out


Where = Callable[[Site], tuple[str, str]]
BOTH: Sequence[Where] = (through_broker, at_controllers)


@pytest.mark.usefixtures("stale")
@pytest.mark.parametrize(
    ("tool", "arguments", "places", "expected"),
    [
        (f"{TOOLS}.FeatureCommand", ("describe",), BOTH, "metadata.version"),
        (f"{TOOLS}.TopicCommand", ("--create", "--topic", "new"), (through_broker,), "Created topic new"),
        (f"{TOOLS}.TopicCommand", ("--list",), (through_broker,), "orders"),
        (
            "kafka.admin.ConfigCommand",
            ("--alter", *TOPIC, "--add-config", "retention.ms=60000"),
            BOTH,
            "Completed updating config for topic orders",
        ),
        (f"{TOOLS}.reassign.ReassignPartitionsCommand", ("--list",), BOTH, "No partition reassignments"),
        (
            f"{TOOLS}.LeaderElectionCommand",
            ("--election-type", "preferred", "--all-topic-partitions"),
            (through_broker,),
            "",
        ),
        (f"{TOOLS}.AclCommand", ("--add", "--allow-principal", "User:bob", "--topic", "orders"), BOTH, "bob"),
        (f"{TOOLS}.AclCommand", ("--list",), BOTH, ""),
        (f"{TOOLS}.ClusterTool", ("list-endpoints",), BOTH, "127.0.0.1"),
    ],
    ids=lambda value: value.rpartition(".")[2] if isinstance(value, str) else None,
)
def test_the_tools_are_answered(
    kafka: Kafka, site: Site, tool: str, arguments: Sequence[str], places: Sequence[Where], expected: str
) -> None:
    head = arguments[:1] if tool.endswith("ClusterTool") else ()
    for where in places:
        told = kafka.run(tool, *head, *where(site), *arguments[len(head) :], timeout_s=ANSWERED_WITHIN_S)
        assert expected in told


@pytest.mark.usefixtures("stale")
def test_brokers_are_unregistered(kafka: Kafka, site: Site) -> None:
    for where, broker_id in zip(BOTH, GONE, strict=True):
        arguments = ("unregister", *where(site), "--id", str(broker_id))
        told = kafka.run(f"{TOOLS}.ClusterTool", *arguments, timeout_s=ANSWERED_WITHIN_S)
        assert f"Broker {broker_id} is no longer registered." in told
