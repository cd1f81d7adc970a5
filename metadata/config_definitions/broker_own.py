"""Configs of kquorum's own, and Kafka's that only kquorum's config files have."""

from metadata.config_definitions.definition import Importance
from metadata.config_definitions.kinds import boolean, long, string
from metadata.config_definitions.validators import at_least, one_of

DEFINITIONS = (
    string("cluster.id", None, "The cluster's id, which the node's folders must carry too."),
    boolean(
        "kquorum.allow.exposed.log.dirs",
        False,
        "Whether a node starts on folders that other users of the machine can read or write to.",
    ),
    boolean(
        "kquorum.allow.unsecured.listeners",
        False,
        "Whether listeners without TLS may be at addresses other than loopback.",
    ),
    string(
        "kquorum.grpc.security",
        "plaintext",
        "How the gRPC listener is protected: ssl takes the ssl keys, or those for a listener named grpc.",
        one_of("plaintext", "ssl"),
    ),
    string(
        "kquorum.grpc.listener",
        None,
        "The address of the gRPC service; none turns it off. listener.name.grpc.max.connections and "
        "listener.name.grpc.max.connection.creation.rate bound its connections.",
    ),
    long(
        "kquorum.grpc.max.calls.per.second",
        1_000,
        "How many new calls the gRPC service takes in a second; a connection may have half of them. Those beyond wait.",
        at_least(1),
    ),
    string("kquorum.metrics.listener", None, "The address that metrics are read from; none turns it off."),
    long(
        "kquorum.delegation.token.max.per.owner",
        200,
        "How many delegation tokens that have not expired one principal may own.",
        at_least(1),
    ),
    long(
        "kquorum.frame.timeout.ms",
        30_000,
        "How long a peer may take over a request that it has begun to send, and a second more for each 256 KiB.",
        at_least(1),
    ),
    long(
        "kquorum.output.timeout.ms",
        30_000,
        "How long a peer may take nothing of the output that waits for it.",
        at_least(1),
    ),
    long(
        "kquorum.request.max.elements",
        200_000,
        "How many elements all arrays of a request may have together; most administrative requests take a quarter.",
        at_least(1),
    ),
    long(
        "kquorum.request.max.entries",
        2_000,
        "How many entries an administrative request, or a question about configs, ACLs, quotas or users, may have.",
        at_least(1),
    ),
    long(
        "kquorum.unanswered.request.timeout.ms",
        300_000,
        "How long a request may have no answer before its connection is closed.",
        at_least(1),
    ),
    long(
        "kquorum.reserved.space.bytes",
        16_777_216,
        "Disk space kept back for the writes that a full disk must not stop; 0 keeps none.",
        at_least(0),
    ),
    string(
        "metadata.log.compression",
        "lz4",
        "The codec of the metadata log and of snapshots.",
        one_of("none", "lz4"),
        importance=Importance.LOW,
    ),
    long(
        "unclean.leader.election.interval.ms",
        300_000,
        "How often leaderless partitions are offered to replicas that are not in sync.",
        at_least(1),
        is_internal=True,
    ),
)
