"""Brokers: the node itself, the quorum and the metadata log."""

from kquorum.metadata.configs.definition import LONG_MAX, Importance, boolean, integer, long, names, string
from kquorum.metadata.configs.used_by import (
    BROKER,
    CONTROLLER,
    LISTENERS,
    METADATA_LOG,
    OWN_METRICS,
    OWN_RAFT,
    RAFT,
    START,
    never,
)
from kquorum.metadata.configs.validators import at_least, list_of, not_empty, one_of

DEFINITIONS = (
    # Kafka has no lower bound.
    integer(
        "broker.heartbeat.interval.ms",
        2000,
        "How often a broker tells the controller that it lives.",
        at_least(1),
        used_by=BROKER,
    ),
    integer(
        "broker.id", -1, "The node's id under its older name.", importance=Importance.HIGH, used_by=START
    ),
    string(
        "broker.rack", None, "Where the broker stands, for replicas to be spread over racks.", used_by=BROKER
    ),
    # Kafka has no lower bound.
    integer(
        "broker.session.timeout.ms",
        9000,
        "After how long without a heartbeat a broker is fenced.",
        at_least(1),
        used_by=CONTROLLER,
    ),
    string(
        "cluster.id",
        None,
        "The cluster's id, which the node's folders must carry too.",
        not_empty(),
        used_by=START,
    ),
    names(
        "controller.listener.names",
        None,
        "The listeners of controllers.",
        list_of(may_be_empty=False),
        importance=Importance.HIGH,
        used_by=LISTENERS,
    ),
    long(
        "controller.performance.always.log.threshold.ms",
        2000,
        "From which duration on the controller logs each slow event.",
        at_least(0),
        is_internal=True,
        used_by=OWN_METRICS,
    ),
    long(
        "controller.performance.sample.period.ms",
        60_000,
        "How long the controller gathers durations of events before it logs the slowest.",
        at_least(100),
        is_internal=True,
        used_by=OWN_METRICS,
    ),
    integer(
        "controller.quorum.append.linger.ms",
        0,
        "How long the leader waits to write several changes together.",
        at_least(0),
        used_by=never("batches form by sharing a turn of the event loop"),
    ),
    boolean(
        "controller.quorum.auto.join.enable",
        False,
        "Whether a controller makes itself a voter when it starts.",
        importance=Importance.LOW,
        used_by=RAFT,
    ),
    names(
        "controller.quorum.bootstrap.servers",
        "",
        "Controllers to ask where the quorum is.",
        importance=Importance.HIGH,
        used_by=RAFT,
    ),
    # Kafka: at least 0.
    integer(
        "controller.quorum.election.backoff.max.ms",
        1000,
        "The longest rest after an election without a winner.",
        at_least(1),
        importance=Importance.HIGH,
        used_by=RAFT,
    ),
    # Kafka: at least 0.
    integer(
        "controller.quorum.election.timeout.ms",
        1000,
        "How long a candidate waits for votes, and a voter without a leader before it stands.",
        at_least(1),
        importance=Importance.HIGH,
        used_by=RAFT,
    ),
    integer(
        "controller.quorum.fetch.max.bytes",
        1_048_576,
        "How many bytes of the log a follower asks for at once.",
        at_least(1),
        importance=Importance.LOW,
        used_by=OWN_RAFT,
    ),
    integer(
        "controller.quorum.fetch.snapshot.max.bytes",
        1_048_576,
        "How many bytes of a snapshot a follower asks for at once.",
        at_least(1),
        importance=Importance.LOW,
        used_by=OWN_RAFT,
    ),
    # Kafka: at least 0.
    integer(
        "controller.quorum.fetch.timeout.ms",
        2000,
        "How long a voter goes on without hearing of the leader, and a leader without a majority.",
        at_least(1),
        importance=Importance.HIGH,
        used_by=RAFT,
    ),
    # Kafka: at least 0.
    integer(
        "controller.quorum.request.timeout.ms",
        2000,
        "How long a request within the quorum waits for its answer.",
        at_least(1),
        used_by=RAFT,
    ),
    # Kafka: at least 0.
    integer(
        "controller.quorum.retry.backoff.ms",
        20,
        "How long to rest before a request within the quorum is tried again.",
        at_least(1),
        importance=Importance.LOW,
        used_by=RAFT,
    ),
    names(
        "controller.quorum.voters",
        "",
        "The voters of a static quorum, as id@host:port.",
        importance=Importance.HIGH,
        used_by=RAFT,
    ),
    integer(
        "controller.socket.timeout.ms",
        30_000,
        "How long a request to the controller waits for its answer.",
        used_by=never("controller.quorum.request.timeout.ms bounds these requests"),
    ),
    # Kafka has no lower bound.
    integer(
        "initial.broker.registration.timeout.ms",
        60_000,
        "How long a new broker tries to register before it gives up.",
        at_least(1),
        used_by=BROKER,
    ),
    long(
        "internal.metadata.delete.delay.millis",
        60_000,
        "How long a deleted file of the metadata log stays on disk.",
        importance=Importance.LOW,
        is_internal=True,
        used_by=OWN_RAFT,
    ),
    integer(
        "internal.metadata.log.segment.bytes",
        None,
        "The segment size of the metadata log for Kafka's own tests, without a lower limit.",
        importance=Importance.LOW,
        is_internal=True,
        used_by=OWN_RAFT,
    ),
    integer(
        "internal.metadata.max.batch.size.in.bytes",
        8_388_608,
        "The largest batch of the metadata log.",
        importance=Importance.LOW,
        is_internal=True,
        used_by=OWN_RAFT,
    ),
    boolean(
        "kquorum.allow.exposed.log.dirs",
        False,
        "Whether a node starts on folders that other users of the machine can read or write to.",
        used_by=START,
    ),
    long(
        "kquorum.reserved.space.bytes",
        16_777_216,
        "Disk space kept back for the writes that a full disk must not stop, for the metadata log and for each file "
        "system with log directories; 0 keeps none.",
        at_least(0),
        used_by=METADATA_LOG,
    ),
    string(
        "metadata.log.compression",
        "lz4",
        "The codec of the metadata log and of snapshots.",
        one_of("none", "lz4"),
        importance=Importance.LOW,
        used_by=METADATA_LOG,
    ),
    string(
        "metadata.log.dir",
        None,
        "Where the metadata log lies; the first of log.dirs without it.",
        importance=Importance.HIGH,
        used_by=START,
    ),
    long(
        "metadata.log.max.record.bytes.between.snapshots",
        20_971_520,
        "After how many bytes of new records a snapshot is due.",
        at_least(1),
        importance=Importance.HIGH,
        used_by=METADATA_LOG,
    ),
    long(
        "metadata.log.max.snapshot.interval.ms",
        3_600_000,
        "After how long with any new record a snapshot is due; 0 never.",
        at_least(0),
        importance=Importance.HIGH,
        used_by=METADATA_LOG,
    ),
    # Kafka: at least 8388608.
    integer(
        "metadata.log.segment.bytes",
        1_073_741_824,
        "The segment size of the metadata log.",
        at_least(1024),
        importance=Importance.HIGH,
        used_by=METADATA_LOG,
    ),
    # Kafka has no lower bound.
    long(
        "metadata.log.segment.ms",
        604_800_000,
        "After how long a segment of the metadata log is closed.",
        at_least(1),
        importance=Importance.HIGH,
        used_by=METADATA_LOG,
    ),
    integer(
        "metadata.max.idle.interval.ms",
        500,
        "How often the idle leader writes an empty record; 0 never.",
        at_least(0),
        importance=Importance.LOW,
        used_by=CONTROLLER,
    ),
    # Kafka has no lower bound.
    long(
        "metadata.max.retention.bytes",
        104_857_600,
        "How large log and snapshots may grow before the oldest snapshot goes; -1 is no limit.",
        at_least(-1),
        importance=Importance.HIGH,
        used_by=METADATA_LOG,
    ),
    # Kafka has no lower bound.
    long(
        "metadata.max.retention.ms",
        604_800_000,
        "How old a snapshot may get before it goes; -1 is no limit.",
        at_least(-1),
        importance=Importance.HIGH,
        used_by=METADATA_LOG,
    ),
    integer("node.id", None, "The node's id.", at_least(0), importance=Importance.HIGH, used_by=START),
    names(
        "process.roles",
        None,
        "What the node is: broker, controller or both.",
        list_of("broker", "controller", may_be_empty=False),
        importance=Importance.HIGH,
        used_by=START,
    ),
    long(
        "server.max.startup.time.ms",
        LONG_MAX,
        "How long the start may take.",
        at_least(0),
        is_internal=True,
        used_by=never("a start has no time limit"),
    ),
    boolean(
        "unstable.api.versions.enable",
        False,
        "Whether API versions under development are offered.",
        importance=Importance.HIGH,
        is_internal=True,
        used_by=never("kquorum offers released versions only"),
    ),
    boolean(
        "unstable.feature.versions.enable",
        False,
        "Whether feature levels under development may be set.",
        importance=Importance.HIGH,
        is_internal=True,
        used_by=never("kquorum offers released versions only"),
    ),
)
