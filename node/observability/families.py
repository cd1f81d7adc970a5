"""A node's figures as Prometheus families.

Names are Kafka's, as the JMX exporter's example rules for KRaft make them of its MBeans: of raft-metrics (kafka.server)
the attribute high-watermark is `kafka_server_raft_metrics_high_watermark`, and of KafkaController (kafka.controller)
GlobalTopicCount is `kafka_controller_kafkacontroller_globaltopiccount`. What Kafka has no name for begins with
`kquorum_`. docs/observability.md lists them all.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from kquorum.broker.data_figures import DataFigures
from kquorum.broker.group_figures import GroupFigures
from kquorum.broker.lifecycle_states import BrokerState
from kquorum.broker.quota.client_quotas import ClientQuota, QuotaFigures
from kquorum.broker.transaction_figures import TransactionFigures
from kquorum.network.request_times import BOUNDS_MS, TimesOfKind
from kquorum.node.observability.figures import BrokerFigures, ControllerFigures, NodeFigures, QuorumFigures
from kquorum.node.observability.health import why_not_ready
from kquorum.node.observability.partition_counts import Counts, PartitionCounts, ReplicaCounts

Families = Iterator[Metric]

RAFT: Final = "kafka_server_raft_metrics_"
CONTROLLER: Final = "kafka_controller_kafkacontroller_"
METADATA: Final = "kafka_server_broker_metadata_metrics_"
REPLICAS: Final = "kafka_server_replicamanager_"
# Kafka's numbers (BrokerState).
BROKER_STATES: Final = {
    BrokerState.NOT_RUNNING: 0,
    BrokerState.STARTING: 1,
    BrokerState.RECOVERY: 2,
    BrokerState.RUNNING: 3,
    BrokerState.PENDING_CONTROLLED_SHUTDOWN: 6,
    BrokerState.SHUTTING_DOWN: 7,
}


def families_of(node: NodeFigures, counts: Counts) -> Families:
    yield from quorum_families(node.quorum)
    yield from loader_families(node)
    if node.controller is not None and counts.of_cluster is not None:
        yield from controller_families(node, node.controller, counts.of_cluster)
    if node.broker is not None and counts.of_broker is not None:
        yield from broker_families(node, node.broker, counts.of_broker)
        if node.broker.quotas is not None:
            yield from quota_families(node.broker.quotas)
        if node.broker.groups is not None:
            yield from group_families(node.broker.groups)
        if node.broker.transactions is not None:
            yield from transaction_families(node.broker.transactions)
        if node.broker.data is not None:
            yield from data_families(node.broker.data)
    yield from request_time_families(node.request_times)
    yield from freshness_families(node)


def quorum_families(quorum: QuorumFigures) -> Families:
    state = GaugeMetricFamily(f"{RAFT}current_state_info", "The role of this replica", labels=["state"])
    state.add_metric([quorum.state], 1)
    yield state
    yield from gauges(
        RAFT,
        {
            "current_leader": (quorum.current_leader, "Id of the quorum's leader; -1 while unknown"),
            "current_vote": (quorum.current_vote, "Id of the replica that has this one's vote; -1 for none"),
            "current_epoch": (quorum.current_epoch, "The quorum's epoch"),
            "high_watermark": (
                quorum.high_watermark,
                "End (exclusive) of what is committed; -1 while unknown",
            ),
            "log_end_offset": (quorum.log_end_offset, "End (exclusive) of this replica's log"),
            "log_end_epoch": (quorum.log_end_epoch, "Epoch of the last batch of this replica's log"),
            "number_unknown_voter_connections": (quorum.unknown_voters, "Voters whose address is not known"),
            "commit_latency_avg": (
                quorum.commit_latency.average_ms,
                "ms from append to commit, at the leader",
            ),
            "commit_latency_max": (quorum.commit_latency.max_ms, "ms from append to commit, at the leader"),
            "election_latency_avg": (quorum.election_latency.average_ms, "ms that elections took"),
            "election_latency_max": (quorum.election_latency.max_ms, "ms that elections took"),
        },
    )
    yield from gauges(
        "kquorum_",
        {
            "voters": (quorum.voters, "How many voters there are"),
            "log_start_offset": (quorum.log_start_offset, "Where this replica's log begins"),
            "newest_snapshot_offset": (quorum.newest_snapshot_offset, "End of the newest snapshot; -1: none"),
        },
    )


def loader_families(node: NodeFigures) -> Families:
    yield from gauges(
        "kafka_server_metadataloader_",
        {
            "currentmetadataversion": (node.image.metadata_version, "The finalized metadata.version"),
            "currentcontrollerid": (
                node.quorum.current_leader,
                "Id of the active controller; -1: none known",
            ),
            "handleloadsnapshotcount": (node.quorum.snapshots_loaded, "Snapshots loaded since the start"),
        },
    )


def controller_families(
    node: NodeFigures, controller: ControllerFigures, partitions: PartitionCounts
) -> Families:
    brokers = node.image.cluster.brokers.values()
    fenced = sum(broker.fenced for broker in brokers)
    freshness = node.freshness
    yield from gauges(
        CONTROLLER,
        {
            "activecontrollercount": (int(controller.is_active), "1 on the active controller"),
            "globaltopiccount": (len(node.image.topics.by_id), "Topics"),
            "globalpartitioncount": (partitions.partitions, "Partitions"),
            "offlinepartitionscount": (partitions.without_leader, "Partitions without a leader"),
            "preferredreplicaimbalancecount": (
                partitions.not_led_by_preferred,
                "Partitions which their preferred replica does not lead",
            ),
            "fencedbrokercount": (fenced, "Fenced brokers"),
            "activebrokercount": (len(brokers) - fenced, "Brokers that are not fenced"),
            "metadataerrorcount": (
                controller.error_count,
                "Decisions and records that failed through a fault",
            ),
            "lastappliedrecordoffset": (controller.last_applied_offset, "Last offset in the newest image"),
            "lastcommittedrecordoffset": (freshness.offset, "Last offset in the committed image"),
            "lastappliedrecordtimestamp": (
                freshness.timestamp_ms,
                "When the last committed record was written",
            ),
            "lastappliedrecordlagms": (_lag_ms(node), "How old the last committed record is"),
            "newactivecontrollerscount": (
                node.quorum.leaders_seen,
                "Active controllers seen since the start",
            ),
        },
    )
    applied = GaugeMetricFamily(
        "kquorum_broker_applied_offset", "What each broker's heartbeat says it has applied", labels=["broker"]
    )
    for broker_id, offset in sorted(controller.broker_offsets.items()):
        applied.add_metric([str(broker_id)], offset)
    yield applied


def broker_families(node: NodeFigures, broker: BrokerFigures, counts: ReplicaCounts) -> Families:
    freshness = node.freshness
    yield from gauges(
        "kafka_server_kafkaserver_",
        {
            "brokerstate": (
                BROKER_STATES[broker.state],
                "0 not running, 1 starting, 2 recovery, 3 running, 6 leaving, 7 ending",
            )
        },
    )
    yield from gauges(
        METADATA,
        {
            "last_applied_record_offset": (freshness.offset, "Last offset in the image that is served"),
            "last_applied_record_timestamp": (freshness.timestamp_ms, "When that record was written"),
            "last_applied_record_lag_ms": (_lag_ms(node), "How old that record is"),
            "metadata_load_error_count": (broker.skipped_records, "Committed records that were skipped"),
        },
    )
    yield from gauges(
        REPLICAS,
        {
            "leadercount": (counts.leads, "Partitions that this broker leads"),
            "partitioncount": (counts.replicas, "Partitions with a replica here"),
            "underreplicatedpartitions": (
                counts.leads_under_replicated,
                "Led here, with an ISR short of the replicas, without those being added",
            ),
            "reassigningpartitions": (counts.reassigning, "Led here, and being reassigned"),
        },
    )
    yield from gauges(
        "kafka_log_logmanager_",
        {"offlinelogdirectorycount": (broker.offline_log_dirs, "Log directories that failed")},
    )
    yield from gauges(
        "kafka_server_",
        {
            f"{name}_byte_rate": (rate, "Bytes/s of the replicas that this throttle holds back")
            for name, rate in broker.throttled_replication.items()
        },
    )
    yield from gauges(
        "kquorum_broker_",
        {
            "epoch": (broker.broker_epoch, "Epoch of the registration; -1 before it"),
            "fenced": (int(broker.is_fenced), "1 while the controller has this broker fenced"),
        },
    )


# Of each kind of quota Kafka's type, its attribute for what is measured, and what that is.
_QUOTAS: Final = {
    ClientQuota.PRODUCE: ("produce", "byte_rate", "Bytes/s of Produce requests of clients with a quota"),
    ClientQuota.FETCH: ("fetch", "byte_rate", "Bytes/s of Fetch answers to consumers with a quota"),
    ClientQuota.REQUEST: ("request", "request_time", "Percent of the loop's time for clients with a quota"),
}


_GROUPS: Final = "kafka_server_group_coordinator_metrics_"
_CLASSIC_STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
_CONSUMER_STATES: Final = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
_SHARD_STATES: Final = ("loading", "active", "failed")


def group_families(groups: GroupFigures) -> Families:
    protocols = {"classic": sum(groups.classic.values()), "consumer": sum(groups.consumer.values())}
    yield _labelled(f"{_GROUPS}group_count", "protocol", protocols, "Groups that this broker coordinates")
    states = {state.lower(): groups.consumer.get(state, 0) for state in _CONSUMER_STATES}
    yield _labelled(f"{_GROUPS}consumer_group_count", "state", states, "Groups of the consumer protocol")
    shards = {state: groups.partitions.get(state, 0) for state in _SHARD_STATES}
    yield _labelled(
        f"{_GROUPS}num_partitions", "state", shards, "Partitions of __consumer_offsets that this broker leads"
    )
    counters = groups.counters
    yield from gauges(
        _GROUPS,
        {
            "offset_commit_count": (counters.offset_commits, "Offsets that were committed"),
            "offset_expiration_count": (counters.offset_expirations, "Offsets that expired"),
            "offset_deletion_count": (counters.offset_deletions, "Offsets that clients deleted"),
            "group_completed_rebalance_count": (
                counters.completed_rebalances,
                "Rebalances of classic groups that ended with an assignment",
            ),
            "consumer_group_rebalance_count": (
                counters.consumer_rebalances,
                "Epochs that began in groups of the consumer protocol",
            ),
        },
    )
    yield from gauges(
        "kafka_coordinator_group_groupmetadatamanager_",
        {
            "numoffsets": (groups.offsets, "Committed offsets of all groups"),
            "numgroups": (protocols["classic"], "Groups of the classic protocol"),
            **{
                f"numgroups{state.lower()}": (
                    groups.classic.get(state, 0),
                    f"Classic groups in the state {state}",
                )
                for state in _CLASSIC_STATES
            },
        },
    )


def transaction_families(transactions: TransactionFigures) -> Families:
    """Kafka has no figure for most of these."""
    yield from gauges(
        REPLICAS,
        {
            "partitionswithlatetransactionscount": (
                transactions.late_partitions,
                "Led here, with a transaction that its coordinator should have ended long ago",
            )
        },
    )
    yield from gauges(
        "kafka_coordinator_transaction_transactionmarkerchannelmanager_",
        {
            "unknowndestinationqueuesize": (
                transactions.without_leader,
                "Markers that wait for a leader or for another attempt",
            )
        },
    )
    shards = {state: transactions.partitions.get(state, 0) for state in _SHARD_STATES}
    yield _labelled(
        "kquorum_transactions_num_partitions",
        "state",
        shards,
        "Partitions of __transaction_state that this broker leads",
    )
    yield from gauges(
        "kquorum_transactions_",
        {
            "transactional_ids": (transactions.transactional_ids, "Transactional ids that are known here"),
            "ongoing": (transactions.ongoing, "Open transactions"),
            "ending": (transactions.ending, "Transactions whose markers are not all written"),
            "aborted_by_timeout": (transactions.aborted, "Transactions whose time was over"),
            "not_verified": (
                transactions.not_verified,
                "Partitions that other coordinators did not find in a transaction",
            ),
        },
    )


def _labelled(name: str, label: str, values: Mapping[str, int], words: str) -> Metric:
    family = GaugeMetricFamily(name, words, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def quota_families(quotas: QuotaFigures) -> Families:
    for kind, (name, attribute, words) in _QUOTAS.items():
        labels = ["user", "client_id"]
        rate = GaugeMetricFamily(f"kafka_server_{name}_{attribute}", words, labels=labels)
        throttle = GaugeMetricFamily(
            f"kafka_server_{name}_throttle_time", "Average throttle of the last seconds, in ms", labels=labels
        )
        for each in quotas.rates:
            if each.quota is kind:
                rate.add_metric([each.user, each.client_id], each.per_second)
                throttle.add_metric([each.user, each.client_id], each.throttle_ms)
        yield rate
        yield throttle
        yield GaugeMetricFamily(
            f"kafka_server_{name}_queue_size",
            "Connections that this quota mutes",
            quotas.throttled_connections[kind],
        )
    yield GaugeMetricFamily(
        "kafka_server_request_exempt_request_time",
        "Percent of the loop's time for what brokers ask of each other, measured while there are request quotas",
        quotas.exempt_request_time,
    )


_TOPICS: Final = "kafka_server_brokertopicmetrics_"
_OF_TOPICS: Final = {
    "messagesin": ("messages_in", "Records that clients produced"),
    "bytesin": ("bytes_in", "Bytes of records that clients produced"),
    "bytesout": ("bytes_out", "Bytes of records that consumers read"),
    "totalproducerequests": ("produce_requests", "Produce requests, once for each partition"),
    "totalfetchrequests": ("fetch_requests", "Answers to consumers, once for each partition in them"),
    "failedproducerequests": ("failed_produce_requests", "Of these, those with an error"),
    "failedfetchrequests": ("failed_fetch_requests", "Of these, those with an error"),
}
_OPERATIONS: Final = ("Produce", "Fetch", "DeleteRecords", "WriteTxnMarkers")


def data_families(data: DataFigures) -> Families:
    """Of topics there is a sample for each with records here, and one without a label for all."""
    for name, (field, words) in _OF_TOPICS.items():
        family = CounterMetricFamily(_TOPICS + name, words, labels=["topic"])
        family.add_sample(f"{_TOPICS}{name}_total", {}, getattr(data.total, field))
        for topic, counters in data.topics.items():
            family.add_metric([topic], getattr(counters, field))
        yield family
    yield CounterMetricFamily(
        f"{_TOPICS}replicationbytesin", "Bytes of records fetched from leaders", data.replication_bytes_in
    )
    yield CounterMetricFamily(
        f"{_TOPICS}replicationbytesout", "Bytes of records sent to followers", data.replication_bytes_out
    )
    waiting = {each: data.waiting.get(each, 0) for each in _OPERATIONS}
    yield _labelled(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "delayedoperation",
        waiting,
        "Requests that wait for an event",
    )
    expired = CounterMetricFamily(
        "kquorum_delayedoperationpurgatory_expired",
        "Requests whose wait ended with its time",
        labels=["delayedoperation"],
    )
    for each in _OPERATIONS:
        expired.add_metric([each], data.expired.get(each, 0))
    yield expired
    yield from gauges(
        "kafka_server_replicafetchermanager_",
        {
            "maxlag": (data.max_lag, "Records that the replica lacks which lags most behind its leader"),
            "failedpartitionscount": (
                data.failed_partitions,
                "Followed, and not fetched before a new leader epoch",
            ),
        },
    )
    yield from gauges(
        REPLICAS,
        {
            "offlinereplicacount": (data.offline_replicas, "Replicas here whose log cannot be used"),
            "underminisrpartitioncount": (data.under_min_isr, "Led here, below min.insync.replicas"),
        },
    )
    yield from gauges(
        "kafka_server_fetchsessioncache_",
        {
            "numincrementalfetchsessions": (data.fetch_sessions, "Fetch sessions"),
            "numincrementalfetchpartitionscached": (data.session_partitions, "Partitions in them"),
        },
    )
    yield CounterMetricFamily(
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions",
        "Fetch sessions that made room for others",
        data.session_evictions,
    )
    yield from gauges(
        "kquorum_", {"full_log_directories": (data.full_log_dirs, "Log directories that take no records")}
    )


_TIMES: Final = {
    "totaltimems": ("total", "ms from a request to its answer"),
    "requestqueuetimems": ("queue", "ms that requests waited for their handler"),
    "localtimems": ("local", "ms that handlers took at once"),
    "remotetimems": ("remote", "ms that requests waited for others, or for later turns of the loop"),
}


def request_time_families(roles: Sequence[Mapping[str, TimesOfKind]]) -> Families:
    for name, (field, words) in _TIMES.items():
        family = HistogramMetricFamily(f"kafka_network_requestmetrics_{name}", words, labels=["request"])
        for kind in sorted({each for role in roles for each in role}):
            found = [getattr(role[kind], field) for role in roles if kind in role]
            counts = accumulate(
                sum(each.counts[index] for each in found) for index in range(len(BOUNDS_MS) + 1)
            )
            bounds = [*(str(float(each)) for each in BOUNDS_MS), "+Inf"]
            family.add_metric(
                [kind], list(zip(bounds, counts, strict=True)), sum(each.sum_ms for each in found)
            )
        yield family


def freshness_families(node: NodeFigures) -> Families:
    since_ms = node.freshness.ms_since_commit
    yield from gauges(
        "kquorum_",
        {
            "ready": (
                int(not why_not_ready(node.freshness, node.broker, node.now_ms)),
                "1 while /healthz answers 200",
            ),
            "cut_off": (
                int(node.freshness.is_cut_off),
                "1 while the quorum is not heard: the image grows old",
            ),
            "last_commit_seen_age_ms": (
                float("nan") if since_ms is None else since_ms,
                "How long ago a commit was seen",
            ),
        },
    )


def gauges(prefix: str, values: Mapping[str, tuple[float, str]]) -> Families:
    for name, (value, help_text) in values.items():
        yield GaugeMetricFamily(prefix + name, help_text, value)


def _lag_ms(node: NodeFigures) -> float:
    """Kafka answers the time itself where there is no record."""
    return node.now_ms - node.freshness.timestamp_ms if node.freshness.timestamp_ms >= 0 else node.now_ms
