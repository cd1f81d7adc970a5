"""What a node of kquorum does with a key: the part that reads it, or why the key has no effect, or why it is refused.

tests/unit/node/config/test_keys_in_effect.py compares this with the keys that the code reads.
"""

from dataclasses import dataclass
from enum import StrEnum


class Effect(StrEnum):
    READ = "read"
    NOT_YET = "not yet"
    NONE = "none"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Use:
    """`words` name the part that reads the key, the feature that will read it, or the reason."""

    effect: Effect
    words: str

    @property
    def is_read(self) -> bool:
        return self.effect is Effect.READ

    def __str__(self) -> str:
        if self.effect is Effect.NOT_YET:
            return f"no effect yet; comes with {self.words}"
        if self.effect is Effect.NONE:
            return f"no effect: {self.words}"
        return f"refused in a config file: {self.words}" if self.effect is Effect.REFUSED else self.words


def read_by(part: str) -> Use:
    return Use(Effect.READ, part)


def not_yet(feature: str) -> Use:
    """The node accepts the key, stores and describes it, and warns that it has no effect."""
    return Use(Effect.NOT_YET, feature)


def never(reason: str) -> Use:
    """The node accepts the key, because a working server.properties may hold it, and warns."""
    return Use(Effect.NONE, reason)


def refused(reason: str) -> Use:
    """The node does not start with this key in its config file: it would not do what the key promises."""
    return Use(Effect.REFUSED, reason)


# Read from the node's config file when the node starts.
START = read_by("start of the node")
RAFT = read_by("raft")
METADATA_LOG = read_by("metadata log and snapshots")
CONTROLLER = read_by("controller")
BROKER = read_by("broker lifecycle")
LISTENERS = read_by("listeners")
NETWORK_LIMITS = read_by("network limits")
TLS_AND_SASL = read_by("TLS and SASL")
AUTHORIZER = read_by("authorizer")
TOKENS = read_by("delegation tokens")
GRPC = read_by("gRPC listener")
METRICS = read_by("metrics listener")
FETCH = read_by("answers to Fetch")
LOG_MANAGER = read_by("partition logs")
LOG_CLEANER = read_by("log cleaner")
REPLICA_FETCHERS = read_by("replication of partitions")
GROUPS = read_by("group coordinator")
TRANSACTION_COORDINATOR = read_by("transaction coordinator")
CLIENT_QUOTAS = read_by("client quotas")
REPLICATION_THROTTLES = read_by("throttles of replication")
# Read by Kafka's name, from the log and the config file, whenever they are needed.
TOPIC_CONFIGS = read_by("configs of topics: default and limits")
GROUP_CONFIGS = read_by("configs of groups: default and limits")
INTERNAL_TOPICS = read_by("creation of Kafka's internal topics")

REPLICATION = not_yet("partition replication")
LATER_GROUPS = not_yet("groups of the streams protocol")
TWO_PHASE_COMMIT = not_yet("transactions of two phases (KIP-939)")
SHARE_COORDINATOR = not_yet("the share coordinator")
TIERED_STORAGE = not_yet("tiered storage")
CLIENT_METRICS = not_yet("client metrics (KIP-714)")

ONE_EVENT_LOOP = never("each node serves all connections in one event loop")
NO_PURGATORY_LISTS = never("requests that were answered leave nothing to tidy up")
ONE_WRITE_EACH = never("the group coordinator writes each change at once")
SYSTEM_SOCKETS = never("the operating system sizes the sockets' buffers and queues")
OWN_METRICS = never("kquorum.metrics.listener serves the metrics")
PYTHON_TLS = never("OpenSSL does TLS here, not a JVM")
NO_KERBEROS = never("the SASL mechanisms are PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512")
ONE_CLEANER = never("the cleaner is one thread, with buffers of its own size")
CONTROLLER_PEERS = never("nodes reach each other by the controllers' listeners")
OWN_RAFT = never("kquorum's raft has its own bound")
JAVA_CLASS = refused("kquorum cannot run a Java class; take this key out")
