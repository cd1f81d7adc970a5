"""Idle connections that have not logged in must not use up the file descriptors that other clients need."""

import resource
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from tests.attacks.few_descriptors import LimitedNode, held_connections, limited_node, still_open
from tests.support.certificates import cluster_certificates

OPEN_FILES = 200
CONNECTIONS = 300
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# Each topic is more than a segment.
PARTITIONS, SMALL_SEGMENTS = "60", {"metadata.log.segment.bytes": 1_024, "metadata.log.compression": "none"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedNode]:
    with limited_node(tmp_path_factory.mktemp("node"), OPEN_FILES, **SMALL_SEGMENTS) as running:
        yield running


def check_health(node: LimitedNode, topic: str) -> None:
    """The metrics listener answers, Kafka's listener serves, and the log continues in a new segment."""
    segments = node.segments
    assert "kquorum_" in node.metrics()
    create = ("topics", "create", topic, "--partitions", PARTITIONS, "--bootstrap-server", node.bootstrap)
    assert run(create) == 0, node.told()
    assert wait_until(lambda: node.segments > segments, 10), node.told()
    # Each partition keeps a descriptor for the end of its log, and the next check needs them. An answer may be lost.
    delete = ("topics", "delete", topic, "--bootstrap-server", node.bootstrap)
    listed = ("topics", "describe", topic, "--bootstrap-server", node.bootstrap)
    assert wait_until(lambda: run(delete) == 0 or run(listed) == 1, 20), node.told()


def test_idle_connections_to_the_metrics_leave_descriptors_for_the_others(node: LimitedNode) -> None:
    with held_connections(node.ports["metrics"], CONNECTIONS) as held:
        assert wait_until(lambda: still_open(held) <= 32, 10), node.told()
        check_health(node, "topic-metrics")


@pytest.mark.parametrize("first", [b"", PREFACE], ids=["silent", "preface"])
def test_idle_grpc_connections_leave_descriptors_for_the_others(
    node: LimitedNode, first: bytes, request: pytest.FixtureRequest
) -> None:
    with held_connections(node.ports["grpc"], CONNECTIONS, first) as held:
        # Half of the files are for connections, and a quarter of that for gRPC.
        assert wait_until(lambda: still_open(held) <= OPEN_FILES // 8, 10), node.told()
        check_health(node, f"topic-{request.node.callspec.id}")
    assert node.is_running, node.told()


def test_idle_connections_to_both_roles_leave_descriptors_for_the_log(node: LimitedNode) -> None:
    """The limits of the two roles together are more than there is. Votes and epochs have descriptors of their own."""
    assert node.spare_descriptors >= 8
    # Connects the broker to the controller: a new connection finds no place at a listener that is full.
    check_health(node, "topic-before")
    with held_connections(node.ports["CONTROLLER"], CONNECTIONS) as of_controller:
        check_health(node, "topic-controller")
        with held_connections(node.ports["PLAINTEXT"], CONNECTIONS) as of_broker:
            everyone = [*of_controller, *of_broker]
            assert wait_until(lambda: still_open(everyone) <= OPEN_FILES * 3 // 4, 10), node.told()
            assert "kquorum_" in node.metrics()
    assert wait_until(lambda: "ulimit -n" in node.told(), 10)
    check_health(node, "topic-afterwards")
    assert node.is_running, node.told()


@pytest.mark.slow
def test_idle_connections_do_not_keep_a_broker_from_the_controller(tmp_path: Path) -> None:
    """The broker of this node has forwarded nothing yet: its first request needs a new connection. It gets one when the
    idle connections have been silent for as long as the listener allows (10 s)."""
    with limited_node(tmp_path, OPEN_FILES) as node, held_connections(node.ports["CONTROLLER"], CONNECTIONS):
        create = ("topics", "create", "first", "--bootstrap-server", node.bootstrap, "--timeout-ms", "60000")
        assert run(create) == 0, node.told()


@pytest.mark.slow
def test_a_node_without_descriptors_goes_on_in_its_segment(tmp_path: Path) -> None:
    """The log grows by itself meanwhile, because the active controller writes a NoOp now and then."""
    often = {"metadata.max.idle.interval.ms": 10}
    with limited_node(tmp_path, OPEN_FILES, **SMALL_SEGMENTS, **often) as node:
        pid = node.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        segments = node.segments
        assert wait_until(lambda: node.segments > segments, 20), node.told()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (node.lowest_free_descriptor(), hard))
        assert wait_until(lambda: "no segment can be begun" in node.told(), 20), node.told()
        size = node.log_bytes
        assert wait_until(lambda: node.log_bytes > size + 4 * 1_024 or not node.is_running, 20), node.told()
        assert node.is_running, node.told()
        segments = node.segments
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
        assert wait_until(lambda: node.segments > segments + 1, 20), node.told()
        check_health(node, "topic-afterwards")


@pytest.mark.slow
def test_peers_without_tls_keep_no_place_of_grpc_and_fill_no_disk_with_lines(tmp_path: Path) -> None:
    cluster_certificates(tmp_path / "certs", (1,))
    secured = {
        "kquorum.grpc.security": "ssl",
        "ssl.keystore.location": str(tmp_path / "certs" / "node-1.pem"),
    }
    with limited_node(tmp_path, OPEN_FILES, **secured) as node:
        said = node.output.read_text()
        for _ in range(4):
            with held_connections(node.ports["grpc"], 10, PREFACE) as not_tls:
                assert wait_until(lambda: still_open(not_tls) == 0, 10)
        with held_connections(node.ports["grpc"], CONNECTIONS) as held:
            assert wait_until(lambda: still_open(held) <= OPEN_FILES // 8, 10), node.told()
            assert wait_until(lambda: still_open(held) == 0, 30), node.told()
            authority = (tmp_path / "certs" / "ca.pem").read_bytes()
            credentials = grpc.ssl_channel_credentials(authority)
            with grpc.secure_channel(f"localhost:{node.ports['grpc']}", credentials) as channel:
                answer = health_pb2_grpc.HealthStub(channel).Check(
                    health_pb2.HealthCheckRequest(), timeout=20, wait_for_ready=True
                )
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        added = node.output.read_text().removeprefix(said).splitlines()
        # The front's own lines, which are bounded as those of other listeners; gRPC's C core wrote one for each peer.
        assert all(" on listener grpc" in line for line in added), added
        assert len(added) < CONNECTIONS
