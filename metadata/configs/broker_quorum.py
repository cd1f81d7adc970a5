"""Configs of the node itself, of the quorum and of the metadata log."""

from metadata.configs.definition import Importance
from metadata.configs.kinds import LONG_MAX, boolean, integer, long, names, string
from metadata.configs.validators import at_least, list_of

DEFINITIONS = (
    integer("broker.heartbeat.interval.ms", 2000, "How often a broker tells the controller that it lives."),
    integer("broker.id", -1, "The node's id under its older name.", importance=Importance.HIGH),
    string("broker.rack", None, "Where the broker stands, for replicas to be spread over racks."),
    integer("broker.session.timeout.ms", 9000, "After how long without a heartbeat a broker is fenced."),
    names(
        "controller.listener.names",
        None,
        "The listeners of controllers.",
        list_of(may_be_empty=False),
        importance=Importance.HIGH,
    ),
    integer(
        "controller.quorum.append.linger.ms",
        0,
        "How long the leader waits to write several changes together.",
        at_least(0),
    ),
    boolean(
        "controller.quorum.auto.join.enable",
        False,
        "Whether a controller makes itself a voter when it starts.",
        importance=Importance.LOW,
    ),
    names(
        "controller.quorum.bootstrap.servers",
        "",
        "Controllers to ask where the quorum is.",
        importance=Importance.HIGH,
    ),
    integer(
        "controller.quorum.election.backoff.max.ms",
        1000,
        "The longest rest after an election without a winner.",
        at_least(0),
        importance=Importance.HIGH,
    ),
    integer(
        "controller.quorum.election.timeout.ms",
        1000,
        "How long a candidate waits for votes, and a voter without a leader before it stands.",
        at_least(0),
        importance=Importance.HIGH,
    ),
    integer(
        "controller.quorum.fetch.max.bytes",
        1_048_576,
        "How many bytes of the log a follower asks for at once.",
        at_least(1),
        importance=Importance.LOW,
    ),
    integer(
        "controller.quorum.fetch.snapshot.max.bytes",
        1_048_576,
        "How many bytes of a snapshot a follower asks for at once.",
        at_least(1),
        importance=Importance.LOW,
    ),
    integer(
        "controller.quorum.fetch.timeout.ms",
        2000,
        "How long a voter goes on without hearing of the leader, and a leader without a majority.",
        at_least(0),
        importance=Importance.HIGH,
    ),
    integer(
        "controller.quorum.request.timeout.ms",
        2000,
        "How long a request within the quorum waits for its answer.",
        at_least(0),
    ),
    integer(
        "controller.quorum.retry.backoff.ms",
        20,
        "How long to rest before a request within the quorum is tried again.",
        at_least(0),
        importance=Importance.LOW,
    ),
    names(
        "controller.quorum.voters",
        "",
        "The voters of a static quorum, as id@host:port.",
        importance=Importance.HIGH,
    ),
    integer(
        "controller.socket.timeout.ms", 30_000, "How long a request to the controller waits for its answer."
    ),
    integer(
        "initial.broker.registration.timeout.ms",
        60_000,
        "How long a new broker tries to register before it gives up.",
    ),
    string(
        "metadata.log.dir",
        None,
        "Where the metadata log lies; the first of log.dirs without it.",
        importance=Importance.HIGH,
    ),
    long(
        "metadata.log.max.record.bytes.between.snapshots",
        20_971_520,
        "After how many bytes of new records a snapshot is due.",
        at_least(1),
        importance=Importance.HIGH,
    ),
    long(
        "metadata.log.max.snapshot.interval.ms",
        3_600_000,
        "After how long with any new record a snapshot is due; 0 never.",
        at_least(0),
        importance=Importance.HIGH,
    ),
    integer(
        "metadata.log.segment.bytes",
        1_073_741_824,
        "The segment size of the metadata log.",
        at_least(8388608),
        importance=Importance.HIGH,
    ),
    long(
        "metadata.log.segment.ms",
        604_800_000,
        "After how long a segment of the metadata log is closed.",
        importance=Importance.HIGH,
    ),
    integer(
        "metadata.max.idle.interval.ms",
        500,
        "How often the idle leader writes an empty record; 0 never.",
        at_least(0),
        importance=Importance.LOW,
    ),
    long(
        "metadata.max.retention.bytes",
        104_857_600,
        "How large log and snapshots may grow before the oldest snapshot goes; -1 is no limit.",
        importance=Importance.HIGH,
    ),
    long(
        "metadata.max.retention.ms",
        604_800_000,
        "How old a snapshot may get before it goes; -1 is no limit.",
        importance=Importance.HIGH,
    ),
    integer("node.id", None, "The node's id.", at_least(0), importance=Importance.HIGH),
    names(
        "process.roles",
        None,
        "What the node is: broker, controller or both.",
        list_of("broker", "controller", may_be_empty=False),
        importance=Importance.HIGH,
    ),
    long(
        "server.max.startup.time.ms", LONG_MAX, "How long the start may take.", at_least(0), is_internal=True
    ),
    boolean(
        "unstable.api.versions.enable",
        False,
        "Whether API versions under development are offered.",
        importance=Importance.HIGH,
        is_internal=True,
    ),
    boolean(
        "unstable.feature.versions.enable",
        False,
        "Whether feature levels under development may be set.",
        importance=Importance.HIGH,
        is_internal=True,
    ),
)
