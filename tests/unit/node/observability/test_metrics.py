"""The metrics page: Kafka's names, the figures behind them, and a form that Prometheus reads."""

import asyncio
import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kquorum.network.limits import ServerCounters
from kquorum.node.observability.endpoint import routes_of
from kquorum.node.observability.figures import NodeFigures
from kquorum.node.observability.http_server import HttpReply, HttpRequest
from kquorum.node.observability.latency import WINDOW_MS, ElectionMeter, LatencyMeter
from tests.support.node.figures import NOW_MS, node

Sample = tuple[str, tuple[tuple[str, str], ...]]


def asked(figures: NodeFigures, path: str, query: str = "", **headers: str) -> HttpReply:
    async def main() -> HttpReply:
        request = HttpRequest(method="GET", path=path, query=query, headers=headers)
        reply = routes_of(lambda: figures)[path](request)
        return reply if isinstance(reply, HttpReply) else await reply

    return asyncio.run(main())


def scraped(figures: NodeFigures) -> Mapping[Sample, float]:
    reply = asked(figures, "/metrics")
    assert reply.content_type.startswith("text/plain; version=")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(reply.body.decode())
        for sample in family.samples
    }


def of(samples: Mapping[Sample, float], name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka_server_raft_metrics_current_leader", 1),
        ("kafka_server_raft_metrics_current_epoch", 3),
        ("kafka_server_raft_metrics_high_watermark", 42),
        ("kafka_server_raft_metrics_log_end_offset", 44),
        ("kafka_server_raft_metrics_commit_latency_avg", 2.5),
        ("kafka_controller_kafkacontroller_activecontrollercount", 1),
        ("kafka_controller_kafkacontroller_globaltopiccount", 0),
        ("kafka_controller_kafkacontroller_lastappliedrecordoffset", 43),
        ("kafka_controller_kafkacontroller_lastcommittedrecordoffset", 41),
        ("kafka_controller_kafkacontroller_lastappliedrecordlagms", 130),
        ("kafka_server_broker_metadata_metrics_last_applied_record_offset", 41),
        ("kafka_server_kafkaserver_brokerstate", 3),
        ("kafka_server_metadataloader_currentcontrollerid", 1),
        ("kquorum_ready", 1),
        ("kquorum_cut_off", 0),
        ("kquorum_last_commit_seen_age_ms", 120),
    ],
)
def test_a_figure_under_kafkas_name(name: str, value: float) -> None:
    assert of(scraped(node()), name) == value


def test_the_role_is_a_label_and_what_was_not_measured_is_no_number() -> None:
    samples = scraped(node())
    assert of(samples, "kafka_server_raft_metrics_current_state_info", state="leader") == 1
    assert math.isnan(of(samples, "kafka_server_raft_metrics_election_latency_avg"))


def test_each_listener_has_its_counters_and_each_broker_its_offset() -> None:
    samples = scraped(node())
    assert of(samples, "kafka_server_socket_server_metrics_connection_count", listener="PLAINTEXT") == 2
    assert of(samples, "kafka_network_requestmetrics_requests_total", listener="CONTROLLER") == 900
    assert of(samples, "kquorum_network_bad_frames_total", listener="CONTROLLER") == 1
    assert of(samples, "kquorum_broker_applied_offset", broker="102") == 30


def test_every_counter_of_the_network_layer_has_a_name_of_its_own() -> None:
    counters = dict.fromkeys(ServerCounters.__dataclass_fields__, 1)
    samples = scraped(node(listeners={"PLAINTEXT": counters}))
    found = [name for name, labels in samples if labels == (("listener", "PLAINTEXT"),)]
    assert len(found) == len(set(found)) == len(counters)


def test_the_process_is_there_and_a_node_of_one_role_tells_of_that_one() -> None:
    names = {name for name, _ in scraped(node(controller=None))}
    assert "process_resident_memory_bytes" in names
    assert not any(name.startswith("kafka_controller") for name in names)
    assert not any("brokerstate" in name for name, _ in scraped(node(broker=None)))


@pytest.mark.parametrize("version", ["1.1.1.1", "x", "1." * 500])
def test_an_odd_version_of_the_format_is_answered(version: str) -> None:
    """prometheus-client raises TypeError over some of them: each was a 500, and a traceback in the log."""
    reply = asked(node(), "/metrics", accept=f"application/openmetrics-text; version={version}")
    assert reply.status == 200
    assert b"process_resident_memory_bytes" in reply.body


def test_open_metrics_is_negotiated() -> None:
    reply = asked(node(), "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert reply.content_type.startswith("application/openmetrics-text")
    assert reply.body.endswith(b"# EOF\n")


def test_health_is_asked_for_by_either_address() -> None:
    alive = [asked(node(), "/livez"), asked(node(), "/healthz", query="live")]
    assert [b'"live"' in reply.body for reply in alive] == [True, True]
    assert b'"ready"' in asked(node(), "/healthz").body


def test_latencies_are_of_the_last_moments() -> None:
    meter = LatencyMeter()
    assert math.isnan(meter.average(NOW_MS))
    for latency_ms in (1, 2, 9):
        meter.record(NOW_MS, latency_ms)
    assert (meter.average(NOW_MS), meter.maximum(NOW_MS)) == (4.0, 9.0)
    later_ms = NOW_MS + WINDOW_MS
    meter.record(later_ms, 0)
    assert (meter.average(later_ms), meter.maximum(later_ms)) == (3.0, 9.0)
    assert meter.maximum(later_ms + WINDOW_MS) == 0.0
    assert math.isnan(meter.maximum(later_ms + 4 * WINDOW_MS))


def test_an_election_lasts_from_the_first_attempt_until_there_is_a_leader() -> None:
    meter = ElectionMeter()
    for now_ms, role in (
        (0, "follower"),
        (100, "prospective"),
        (150, "candidate"),
        (180, "unattached"),
        (190, "candidate"),
    ):
        meter.handle_role(now_ms, role)
    meter.handle_role(230, "leader")
    assert meter.latency.maximum(230) == 130.0


def test_the_page_about_them_names_them_all_and_no_others() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "observability.md").read_text()
    told = {line.split("`")[1] for line in page.splitlines() if line.startswith(("| `kafka_", "| `kquorum_"))}
    counters = dict.fromkeys(ServerCounters.__dataclass_fields__, 1)
    samples = scraped(node(listeners={"PLAINTEXT": counters}))
    assert told == {name for name, _ in samples if name.startswith(("kafka_", "kquorum_"))}
