"""Broker configs of the topics that are created, and of the directories of logs."""

from metadata.configs.definition import Importance, Update
from metadata.configs.kinds import boolean, integer, long, names
from metadata.configs.validators import at_least, list_of

DEFINITIONS = (
    boolean(
        "auto.create.topics.enable",
        True,
        "Whether a topic that a client asks metadata for is created when it is not there.",
        importance=Importance.HIGH,
    ),
    names(
        "cordoned.log.dirs",
        "",
        'Directories that take no new replicas; "*" means all.',
        list_of(),
        update=Update.PER_BROKER,
    ),
    integer("default.replication.factor", 1, "How many replicas a topic has when its creator does not say."),
    boolean("delete.topic.enable", True, "Whether topics may be deleted.", importance=Importance.HIGH),
    names(
        "log.dir",
        None,
        "A directory of logs, when log.dirs is not given.",
        list_of(may_be_empty=False),
        importance=Importance.HIGH,
    ),
    long(
        "log.dir.failure.timeout.ms",
        30_000,
        "How long a broker waits for the controller to learn of a failed directory before it stops.",
        at_least(1),
        importance=Importance.LOW,
    ),
    names("log.dirs", None, "Directories of logs.", list_of(may_be_empty=False), importance=Importance.HIGH),
    integer(
        "min.insync.replicas",
        1,
        "Default of the topics' min.insync.replicas.",
        at_least(1),
        importance=Importance.HIGH,
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "num.partitions", 1, "How many partitions a topic has when its creator does not say.", at_least(1)
    ),
    integer(
        "num.recovery.threads.per.data.dir",
        2,
        "Threads for each directory that recover logs at the start and flush them at the end.",
        at_least(1),
        importance=Importance.HIGH,
        update=Update.CLUSTER_WIDE,
    ),
    boolean(
        "unclean.leader.election.enable",
        False,
        "Default of the topics' unclean.leader.election.enable.",
        importance=Importance.HIGH,
        update=Update.CLUSTER_WIDE,
    ),
)
