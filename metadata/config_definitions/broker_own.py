"""Configs of kquorum's own, and Kafka's that only kquorum's config files have."""

from metadata.config_definitions.definition import Importance
from metadata.config_definitions.kinds import long, string
from metadata.config_definitions.validators import at_least, one_of

DEFINITIONS = (
    string("cluster.id", None, "The cluster's id, which the node's folders must carry too."),
    string("kquorum.grpc.listener", None, "The address of the gRPC service; none turns it off."),
    string("kquorum.metrics.listener", None, "The address that metrics are read from; none turns it off."),
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
