"""Each request, sent to the twin: its wire form for the controller, the same in plain words for the model."""

from typing import Any
from uuid import UUID

from kquorum.wire.protocol.api_keys import ApiKey
from tests.reference_model import brokers, topics
from tests.reference_model.objects import DIRECTORIES_FROM, Partition, Refused, Topic
from tests.reference_model.twin import ELR_FEATURE, FEATURES, Twin, registration_of
from tests.support.controller_world import CLUSTER_ID, assigned, topic

SET, DELETE = 0, 1
TOPIC, BROKER = 2, 4


def register(twin: Twin, broker_id: int, incarnation: int, *, is_clean: bool = False) -> None:
    known = twin.model.brokers.get(broker_id)
    directories = directories_of(broker_id) if twin.level >= DIRECTORIES_FROM else []

    def decide(written: list[Any]) -> int:
        epoch, offset = registration_of(written)
        return brokers.register(
            twin.model, broker_id, incarnation, directories, is_clean=is_clean, epoch=epoch, offset=offset
        )

    def check(answer: Any, epoch: int) -> None:
        assert answer.broker_epoch == epoch

    twin.ask(
        ApiKey.BROKER_REGISTRATION,
        4,
        decide,
        _top_code,
        check,
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=UUID(int=incarnation),
        listeners=[{"name": "PLAINTEXT", "host": "b", "port": 9092, "security_protocol": 0}],
        features=FEATURES,
        rack=None,
        log_dirs=[UUID(int=each) for each in directories],
        previous_broker_epoch=known.epoch if known is not None and is_clean else -1,
    )


def heartbeat(
    twin: Twin,
    broker_id: int,
    *,
    has_read: bool = True,
    want_fence: bool = False,
    want_shut_down: bool = False,
    epoch_slip: int = 0,
    offline: tuple[int, ...] = (),
) -> None:
    """`has_read`: all that there is; otherwise nothing. `offline` are the places of what failed, among the broker's
    directories."""
    known = twin.model.brokers.get(broker_id)
    epoch = (0 if known is None else known.epoch) + epoch_slip
    read_offset = twin.world.raft.log_end_offset - 1 if has_read else 0
    failed = [directories_of(broker_id)[place] for place in offline]

    def decide(_written: list[Any]) -> tuple[bool, bool, bool]:
        answer = brokers.heartbeat(
            twin.model,
            broker_id,
            epoch,
            read_offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline=failed,
        )
        _note_shutdown_offset(twin, broker_id, want_shut_down=want_shut_down and not any(answer[1:]))
        return answer

    def check(answer: Any, decided: tuple[bool, bool, bool]) -> None:
        told = (answer.is_caught_up, answer.is_fenced, answer.should_shut_down)
        assert told == decided, f"heartbeat of {broker_id}: {told}, but {decided} by the rules"

    twin.ask(
        ApiKey.BROKER_HEARTBEAT,
        1,
        decide,
        _top_code,
        check,
        broker_id=broker_id,
        broker_epoch=epoch,
        current_metadata_offset=read_offset,
        want_fence=want_fence,
        want_shut_down=want_shut_down,
        offline_log_dirs=[UUID(int=each) for each in failed],
    )


def directories_of(broker_id: int) -> list[int]:
    """Brokers 1 and 2 have a single one."""
    return [10_000 + 10 * broker_id + place for place in range(1 if broker_id <= 2 else 2)]


def assign_directory(twin: Twin, broker_id: int, name: str, index: int, place: int) -> None:
    known = twin.model.brokers.get(broker_id)
    epoch = -1 if known is None else known.epoch
    directory = directories_of(broker_id)[-place]
    image = twin.world.controller.image.topics.by_name.get(name)

    def code_of(answer: Any) -> str:
        top = str(answer.error_code.name)
        if top != "none":
            return top
        return str(answer.directories[0].topics[0].partitions[0].error_code.name)

    topic_id = UUID(int=1) if image is None else image.id
    partitions = [{"topic_id": topic_id, "partitions": [{"partition_index": index}]}]
    twin.ask(
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        0,
        lambda _written: brokers.assign_directory(twin.model, broker_id, epoch, name, index, directory),
        code_of,
        broker_id=broker_id,
        broker_epoch=epoch,
        directories=[{"id_": UUID(int=directory), "topics": partitions}],
    )


def _note_shutdown_offset(twin: Twin, broker_id: int, *, want_shut_down: bool) -> None:
    """Where the log ended when the broker began to leave; it does not move while the broker waits."""
    broker = twin.model.brokers[broker_id]
    if want_shut_down and not broker.fenced and broker.shutdown_offset is None:
        broker.shutdown_offset = twin.world.raft.log_end_offset - 1


def unregister(twin: Twin, broker_id: int) -> None:
    twin.ask(
        ApiKey.UNREGISTER_BROKER,
        0,
        lambda _written: brokers.unregister(twin.model, broker_id),
        _top_code,
        broker_id=broker_id,
    )


def create_topic(twin: Twin, name: str, replicas: list[list[int]], configs: dict[str, str]) -> None:
    asked = assigned(name, *replicas) | {
        "configs": [{"name": key, "value": value} for key, value in configs.items()]
    }
    twin.ask(
        ApiKey.CREATE_TOPICS,
        7,
        lambda _written: topics.create_topic(twin.model, name, replicas, configs),
        lambda answer: str(answer.topics[0].error_code.name),
        topics=[asked],
        timeout=1000,
    )


def place_topic(twin: Twin, name: str, count: int, factor: int) -> None:
    """Where replicas go is the controller's choice, so it is looked at, not foretold."""

    def decide(_written: list[Any]) -> None:
        model = twin.model
        if name in model.topics:
            raise Refused("topic_already_exists")
        candidates = set(model.brokers) - model.going()
        serving = model.active() - model.going()
        if factor > len(candidates) or not serving:
            raise Refused("invalid_replication_factor")
        made = twin.world.controller.image.topics.by_name[name].partitions
        partitions = []
        for _, state in made.items():
            isr = [replica for replica in state.replicas if replica in serving]
            assert len(set(state.replicas)) == factor
            assert set(state.replicas) <= candidates
            assert isr, f"a partition without an active broker: {state}"
            assert isr[0] == state.replicas[0], f"its preferred leader is not active: {state}"
            places = [model.default_directory(replica) for replica in state.replicas]
            partitions.append(Partition([*state.replicas], isr, isr[0], directories=places))
        assert len(partitions) == count
        model.topics[name] = Topic(name, partitions)
        model.log.append(("topic", name))
        for index, part in enumerate(partitions):
            model.log.append(("partition", name, index, part.replicas, part.isr, part.leader))

    twin.ask(
        ApiKey.CREATE_TOPICS,
        7,
        decide,
        lambda answer: str(answer.topics[0].error_code.name),
        topics=[topic(name, num_partitions=count, replication_factor=factor)],
        timeout=1000,
    )


def delete_topic(twin: Twin, name: str) -> None:
    twin.ask(
        ApiKey.DELETE_TOPICS,
        6,
        lambda _written: topics.delete_topic(twin.model, name),
        lambda answer: str(answer.responses[0].error_code.name),
        topics=[{"name": name, "topic_id": None}],
        timeout=1000,
    )


def create_partitions(twin: Twin, name: str, count: int, replicas: list[list[int]]) -> None:
    twin.ask(
        ApiKey.CREATE_PARTITIONS,
        3,
        lambda _written: topics.create_partitions(twin.model, name, count, replicas),
        lambda answer: str(answer.results[0].error_code.name),
        topics=[{"name": name, "count": count, "assignments": [{"broker_ids": each} for each in replicas]}],
        timeout=1000,
        validate_only=False,
    )


def alter_partition(
    twin: Twin,
    broker_id: int,
    name: str,
    index: int,
    isr: list[int],
    *,
    slip: tuple[int, int] = (0, 0),
    is_recovering: bool = False,
    stale_member: bool = False,
) -> None:
    """`slip`: how far leader epoch and partition epoch are off; `stale_member`: an epoch that its broker had before."""
    known = twin.model.brokers.get(broker_id)
    epoch = -1 if known is None else known.epoch
    found = twin.model.topics.get(name)
    part = found.partitions[index] if found is not None and index < len(found.partitions) else None
    members = [
        (member, twin.model.brokers[member].epoch - stale_member if member in twin.model.brokers else -1)
        for member in isr
    ]
    asked = {
        "isr": members,
        "leader_epoch": (0 if part is None else part.leader_epoch) + slip[0],
        "partition_epoch": (0 if part is None else part.partition_epoch) + slip[1],
        "is_recovering": is_recovering,
    }
    image = twin.world.controller.image.topics.by_name.get(name)

    def code_of(answer: Any) -> str:
        top = str(answer.error_code.name)
        return top if top != "none" else str(answer.topics[0].partitions[0].error_code.name)

    def check(answer: Any, changed: Partition) -> None:
        (one,) = answer.topics[0].partitions
        told = (one.leader_id, [*one.isr], one.leader_epoch, one.partition_epoch)
        expected = (changed.leader, changed.isr, changed.leader_epoch, changed.partition_epoch)
        assert told == expected, f"AlterPartition of {name}-{index}: {told}, but {expected} by the rules"

    partition = {
        "partition_index": index,
        "leader_epoch": asked["leader_epoch"],
        "new_isr_with_epochs": [
            {"broker_id": member, "broker_epoch": member_epoch} for member, member_epoch in members
        ],
        "leader_recovery_state": int(is_recovering),
        "partition_epoch": asked["partition_epoch"],
    }
    twin.ask(
        ApiKey.ALTER_PARTITION,
        3,
        lambda _written: topics.alter_partition(twin.model, broker_id, epoch, name, index, asked),
        code_of,
        check,
        broker_id=broker_id,
        broker_epoch=epoch,
        topics=[{"topic_id": UUID(int=1) if image is None else image.id, "partitions": [partition]}],
    )


def elect_leader(twin: Twin, name: str, index: int, *, unclean: bool) -> None:
    twin.ask(
        ApiKey.ELECT_LEADERS,
        2,
        lambda _written: topics.elect_leader(twin.model, name, index, unclean=unclean),
        lambda answer: str(answer.replica_election_results[0].partition_result[0].error_code.name),
        election_type=int(unclean),
        topic_partitions=[{"topic": name, "partitions": [index]}],
        timeout=1000,
    )


def reassign(twin: Twin, name: str, index: int, target: list[int] | None) -> None:
    """None cancels."""

    def decide(_written: list[Any]) -> None:
        if target is None:
            topics.cancel_reassignment(twin.model, name, index)
        else:
            topics.reassign(twin.model, name, index, target)

    twin.ask(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        1,
        decide,
        lambda answer: str(answer.responses[0].partitions[0].error_code.name),
        topics=[{"name": name, "partitions": [{"partition_index": index, "replicas": target}]}],
        timeout=1000,
        allow_replication_factor_change=True,
    )


def set_config(twin: Twin, name: str, key: str, value: str | None) -> None:
    """Of a topic, or with the empty name of all brokers."""
    config = {"name": key, "config_operation": DELETE if value is None else SET, "value": value}
    twin.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        lambda _written: topics.set_config(twin.model, name, key, value),
        lambda answer: str(answer.responses[0].error_code.name),
        resources=[{"resource_type": TOPIC if name else BROKER, "resource_name": name, "configs": [config]}],
        validate_only=False,
    )


def turn_elr(twin: Twin, *, on: bool) -> None:
    upgrade, safe_downgrade = 1, 2
    update = {
        "feature": ELR_FEATURE,
        "max_version_level": int(on),
        "upgrade_type": upgrade if on else safe_downgrade,
    }
    twin.ask(
        ApiKey.UPDATE_FEATURES,
        2,
        lambda _written: topics.turn_elr(twin.model, on=on),
        _top_code,
        feature_updates=[update],
        timeout=1000,
        validate_only=False,
    )


def _top_code(answer: Any) -> str:
    return str(answer.error_code.name)
