"""Behind each name is the figure that it names: all figures of this node differ from each other."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from kquorum.broker.data_figures import DataFigures, TopicCounters
from kquorum.broker.group_figures import GroupCounters, GroupFigures
from kquorum.broker.lifecycle_states import BrokerState
from kquorum.broker.quota.client_quotas import ClientQuota, MeasuredRate, QuotaFigures
from kquorum.network.limits import ServerCounters
from kquorum.network.request_times import TimesOfKind
from kquorum.node.commit_watch import Freshness
from kquorum.node.observability.families import (
    BROKER_STATES,
    data_families,
    families_of,
    group_families,
    quota_families,
    request_time_families,
)
from kquorum.node.observability.figures import BrokerFigures, ControllerFigures, Latency, QuorumFigures
from kquorum.node.observability.gather import quorum_state
from kquorum.node.observability.listener_families import listener_families
from kquorum.node.observability.partition_counts import Counts, PartitionCounts, ReplicaCounts
from kquorum.raft.roles import Unattached
from tests.support.images import broker_record, image_of, topic_records
from tests.support.node.figures import NOW_MS, node

FRESHNESS = Freshness(
    reason="", is_cut_off=True, ms_since_commit=601, offset=602, leader_epoch=603, timestamp_ms=NOW_MS - 604
)
QUORUM = QuorumFigures(
    state="follower",
    current_leader=101,
    current_vote=102,
    current_epoch=103,
    high_watermark=104,
    log_start_offset=105,
    log_end_offset=106,
    log_end_epoch=107,
    voters=108,
    unknown_voters=109,
    commit_latency=Latency(average_ms=110, max_ms=111),
    election_latency=Latency(average_ms=112, max_ms=113),
    leaders_seen=114,
    snapshots_loaded=115,
    newest_snapshot_offset=116,
)
CONTROLLER = ControllerFigures(
    is_active=False, last_applied_offset=201, error_count=202, broker_offsets={7: 203}
)
BROKER = BrokerFigures(
    broker_id=1,
    state=BrokerState.PENDING_CONTROLLED_SHUTDOWN,
    broker_epoch=301,
    is_fenced=True,
    skipped_records=302,
    offline_log_dirs=303,
)
COUNTS = Counts(
    of_cluster=PartitionCounts(partitions=401, without_leader=402, not_led_by_preferred=403),
    of_broker=ReplicaCounts(replicas=501, leads=502, leads_under_replicated=503, reassigning=504),
)
BROKERS = [broker_record(number, fenced=number > 3) for number in range(1, 6)]
TOPICS = [record for number in range(1, 5) for record in topic_records(number, f"t{number}")]

EXPECTED: Mapping[str, float] = {
    "kafka_server_raft_metrics_current_leader": 101,
    "kafka_server_raft_metrics_current_vote": 102,
    "kafka_server_raft_metrics_current_epoch": 103,
    "kafka_server_raft_metrics_high_watermark": 104,
    "kquorum_log_start_offset": 105,
    "kafka_server_raft_metrics_log_end_offset": 106,
    "kafka_server_raft_metrics_log_end_epoch": 107,
    "kquorum_voters": 108,
    "kafka_server_raft_metrics_number_unknown_voter_connections": 109,
    "kafka_server_raft_metrics_commit_latency_avg": 110,
    "kafka_server_raft_metrics_commit_latency_max": 111,
    "kafka_server_raft_metrics_election_latency_avg": 112,
    "kafka_server_raft_metrics_election_latency_max": 113,
    "kafka_controller_kafkacontroller_newactivecontrollerscount": 114,
    "kafka_server_metadataloader_handleloadsnapshotcount": 115,
    "kquorum_newest_snapshot_offset": 116,
    "kafka_server_metadataloader_currentcontrollerid": 101,
    "kafka_controller_kafkacontroller_activecontrollercount": 0,
    "kafka_controller_kafkacontroller_lastappliedrecordoffset": 201,
    "kafka_controller_kafkacontroller_metadataerrorcount": 202,
    "kquorum_broker_applied_offset": 203,
    "kafka_controller_kafkacontroller_globaltopiccount": 4,
    "kafka_controller_kafkacontroller_globalpartitioncount": 401,
    "kafka_controller_kafkacontroller_offlinepartitionscount": 402,
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount": 403,
    "kafka_controller_kafkacontroller_fencedbrokercount": 2,
    "kafka_controller_kafkacontroller_activebrokercount": 3,
    "kafka_controller_kafkacontroller_lastcommittedrecordoffset": 602,
    "kafka_controller_kafkacontroller_lastappliedrecordtimestamp": NOW_MS - 604,
    "kafka_controller_kafkacontroller_lastappliedrecordlagms": 604,
    "kafka_server_kafkaserver_brokerstate": 6,
    "kquorum_broker_epoch": 301,
    "kquorum_broker_fenced": 1,
    "kafka_server_broker_metadata_metrics_metadata_load_error_count": 302,
    "kafka_log_logmanager_offlinelogdirectorycount": 303,
    "kafka_server_replicamanager_partitioncount": 501,
    "kafka_server_replicamanager_leadercount": 502,
    "kafka_server_replicamanager_underreplicatedpartitions": 503,
    "kafka_server_replicamanager_reassigningpartitions": 504,
    "kafka_server_broker_metadata_metrics_last_applied_record_offset": 602,
    "kafka_server_broker_metadata_metrics_last_applied_record_timestamp": NOW_MS - 604,
    "kafka_server_broker_metadata_metrics_last_applied_record_lag_ms": 604,
    "kquorum_ready": 0,
    "kquorum_cut_off": 1,
    "kquorum_last_commit_seen_age_ms": 601,
}
# Counters that Kafka has a name for; the others are `kquorum_network_<field>_total`.
KAFKAS = {
    "open_connections": "kafka_server_socket_server_metrics_connection_count",
    "accepted_connections": "kafka_server_socket_server_metrics_connection_creation_total",
    "requests": "kafka_network_requestmetrics_requests_total",
    "pending_requests": "kafka_network_requestchannel_requestqueuesize",
    "received_bytes": "kafka_server_socket_server_metrics_incoming_byte_total",
    "sent_bytes": "kafka_server_socket_server_metrics_outgoing_byte_total",
    "failed_requests": "kafka_network_requestmetrics_errors_total",
    "idle_connections_closed": "kafka_server_socket_server_metrics_expired_connections_killed_count",
    "muted_connections": "kquorum_network_muted_connections",
    "throttled_connections": "kquorum_network_throttled_connections",
    "successful_authentications": "kafka_server_socket_server_metrics_successful_authentication_total",
    "failed_authentications": "kafka_server_socket_server_metrics_failed_authentication_total",
}


def figures(**changes: Any) -> Mapping[str, float]:
    seen = node(
        freshness=FRESHNESS,
        quorum=QUORUM,
        controller=CONTROLLER,
        broker=BROKER,
        image=image_of(*BROKERS, *TOPICS),
        request_times=(),
        **changes,
    )
    return {sample.name: sample.value for family in families_of(seen, COUNTS) for sample in family.samples}


def test_each_figure_is_the_one_that_its_name_says() -> None:
    told = dict(figures())
    del told["kafka_server_raft_metrics_current_state_info"]
    del told["kafka_server_metadataloader_currentmetadataversion"]
    assert told == EXPECTED


def test_the_quotas_of_clients_have_kafkas_names() -> None:
    rates = (
        MeasuredRate(ClientQuota.PRODUCE, "alice", "", 11.0, 12.0),
        MeasuredRate(ClientQuota.FETCH, "", "app", 13.0, 14.0),
        MeasuredRate(ClientQuota.REQUEST, "bob", "app", 15.0, 16.0),
    )
    throttled = {ClientQuota.PRODUCE: 1, ClientQuota.FETCH: 2, ClientQuota.REQUEST: 3}
    told = {
        sample.name.removeprefix("kafka_server_"): (*sample.labels.values(), sample.value)
        for family in quota_families(QuotaFigures(rates, throttled, 17.0))
        for sample in family.samples
    }
    assert told == {
        "produce_byte_rate": ("alice", "", 11),
        "produce_throttle_time": ("alice", "", 12),
        "produce_queue_size": (1,),
        "fetch_byte_rate": ("", "app", 13),
        "fetch_throttle_time": ("", "app", 14),
        "fetch_queue_size": (2,),
        "request_request_time": ("bob", "app", 15),
        "request_throttle_time": ("bob", "app", 16),
        "request_queue_size": (3,),
        "request_exempt_request_time": (17,),
    }


def test_the_groups_have_kafkas_names() -> None:
    figures = GroupFigures(
        counters=GroupCounters(11, 12, 13, 14, 15),
        classic={"Stable": 2, "Empty": 1},
        consumer={"Reconciling": 4},
        offsets=16,
        partitions={"active": 5, "loading": 6},
    )
    told = {
        (sample.name, *sample.labels.values()): sample.value
        for family in group_families(figures)
        for sample in family.samples
    }
    ours, theirs = "kafka_server_group_coordinator_metrics_", "kafka_coordinator_group_groupmetadatamanager_"
    assert {each: value for each, value in told.items() if value} == {
        (f"{ours}group_count", "classic"): 3,
        (f"{ours}group_count", "consumer"): 4,
        (f"{ours}consumer_group_count", "reconciling"): 4,
        (f"{ours}num_partitions", "active"): 5,
        (f"{ours}num_partitions", "loading"): 6,
        (f"{ours}offset_commit_count",): 11,
        (f"{ours}offset_expiration_count",): 12,
        (f"{ours}offset_deletion_count",): 13,
        (f"{ours}group_completed_rebalance_count",): 14,
        (f"{ours}consumer_group_rebalance_count",): 15,
        (f"{theirs}numoffsets",): 16,
        (f"{theirs}numgroups",): 3,
        (f"{theirs}numgroupsstable",): 2,
        (f"{theirs}numgroupsempty",): 1,
    }


def test_the_traffic_of_topics_has_kafkas_names_by_topic_and_for_all() -> None:
    orders, total = TopicCounters(1, 2, 3, 4, 5, 6, 7), TopicCounters(11, 12, 13, 14, 15, 16, 17)
    figures = DataFigures(
        total=total,
        topics={"orders": orders},
        replication_bytes_in=21,
        replication_bytes_out=22,
        waiting={"Produce": 23, "Fetch": 24},
        expired={"Fetch": 25},
        max_lag=26,
        failed_partitions=27,
        offline_replicas=28,
        under_min_isr=29,
        fetch_sessions=30,
        session_partitions=31,
        session_evictions=32,
        full_log_dirs=33,
    )
    told = {
        (sample.name.removeprefix("kafka_server_"), *sample.labels.values()): sample.value
        for family in data_families(figures)
        for sample in family.samples
    }
    topics = "brokertopicmetrics_"
    names = (
        "messagesin",
        "bytesin",
        "bytesout",
        "totalproducerequests",
        "totalfetchrequests",
        "failedproducerequests",
        "failedfetchrequests",
    )
    expected: dict[tuple[str, ...], float] = {}
    for number, name in enumerate(names, 1):
        expected[f"{topics}{name}_total", "orders"] = number
        expected[(f"{topics}{name}_total",)] = 10 + number
    expected |= {
        (f"{topics}replicationbytesin_total",): 21,
        (f"{topics}replicationbytesout_total",): 22,
        ("delayedoperationpurgatory_purgatorysize", "Produce"): 23,
        ("delayedoperationpurgatory_purgatorysize", "Fetch"): 24,
        ("kquorum_delayedoperationpurgatory_expired_total", "Fetch"): 25,
        ("replicafetchermanager_maxlag",): 26,
        ("replicafetchermanager_failedpartitionscount",): 27,
        ("replicamanager_offlinereplicacount",): 28,
        ("replicamanager_underminisrpartitioncount",): 29,
        ("fetchsessioncache_numincrementalfetchsessions",): 30,
        ("fetchsessioncache_numincrementalfetchpartitionscached",): 31,
        ("fetchsessioncache_incrementalfetchsessionevictions_total",): 32,
        ("kquorum_full_log_directories",): 33,
    }
    assert {each: value for each, value in told.items() if value} == expected


def test_the_times_of_requests_are_summed_over_the_roles_and_cumulative() -> None:
    ours, theirs = TimesOfKind(), TimesOfKind()
    ours.record(0.5, 3.0, 0.0)
    theirs.record(1.0, 1.0, 60_000.0)
    told = {
        (sample.name.removeprefix("kafka_network_requestmetrics_"), *sample.labels.values()): sample.value
        for family in request_time_families([{"Produce": ours}, {"Produce": theirs}])
        for sample in family.samples
    }
    assert told["totaltimems_bucket", "Produce", "2.0"] == 0
    assert told["totaltimems_bucket", "Produce", "5.0"] == 1
    assert told["totaltimems_bucket", "Produce", "30000.0"] == 1
    assert told["totaltimems_bucket", "Produce", "+Inf"] == told["totaltimems_count", "Produce"] == 2
    assert told["totaltimems_sum", "Produce"] == 60_005.5
    assert told["requestqueuetimems_bucket", "Produce", "1.0"] == 2
    assert told["localtimems_sum", "Produce"] == 4
    assert told["remotetimems_sum", "Produce"] == 60_000


def test_each_counter_of_a_listener_is_the_one_that_its_name_says() -> None:
    counters = {each.name: number for number, each in enumerate(fields(ServerCounters), 1)}
    told = {
        sample.name: sample.value
        for family in listener_families({"PLAINTEXT": counters})
        for sample in family.samples
    }
    expected = {
        KAFKAS.get(name, f"kquorum_network_{name}_total"): number for name, number in counters.items()
    }
    assert told == expected


def test_the_numbers_of_a_brokers_states_are_kafkas() -> None:
    assert {state.name: number for state, number in BROKER_STATES.items()} == {
        "NOT_RUNNING": 0,
        "STARTING": 1,
        "RECOVERY": 2,
        "RUNNING": 3,
        "PENDING_CONTROLLED_SHUTDOWN": 6,
        "SHUTTING_DOWN": 7,
    }


@pytest.mark.parametrize(("voted", "word"), [(None, "unattached"), (object(), "voted")])
def test_a_voter_that_voted_and_has_no_leader_is_reported(voted: object, word: str) -> None:
    class State:
        pass

    class Replica:
        role = Unattached(election_deadline_ms=1)
        is_voter = True
        state = State()

    Replica.state.voted = voted  # type: ignore[attr-defined]
    replica: Any = Replica()
    assert quorum_state(replica) == word
