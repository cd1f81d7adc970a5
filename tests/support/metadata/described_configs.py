"""A broker and an image with configs at every level."""

from kquorum.metadata.image.configs import BROKER, CLIENT_METRICS, GROUP, TOPIC
from kquorum.wire.metadata_records.configs import ConfigRecord
from tests.support.images import broker_record, image_of, partition_record, topic_records


def record(kind: int, resource: str, name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


SECRET = "listener.name.inside.ssl.keystore.password"


IMAGE = image_of(
    broker_record(1),
    broker_record(2, fenced=True),
    *topic_records(1, "alpha", partition_record(1, 0, (1, 2))),
    *topic_records(2, "beta", partition_record(2, 0, (2,))),
    record(TOPIC, "alpha", "retention.ms", " 5000 "),
    record(TOPIC, "alpha", "from.the.future", "1"),
    record(BROKER, "", "log.retention.ms", "7"),
    record(BROKER, "", "num.io.threads", "4"),
    record(BROKER, "", "my.plugin.password", "hush"),
    record(BROKER, "1", "num.io.threads", "5"),
    record(BROKER, "1", SECRET, "hush"),
    record(BROKER, "2", "num.io.threads", "6"),
    record(GROUP, "g", "consumer.session.timeout.ms", "46000"),
    record(CLIENT_METRICS, "m", "metrics", "*"),
)


STATIC = {
    "node.id": "1",
    "num.io.threads": "3",
    "log.retention.hours": "2",
    "ssl.key.password": "hush",
    "my.own.key": "x",
    "group.consumer.heartbeat.interval.ms": "6000",
}
