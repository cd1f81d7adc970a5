"""The clients of the controllers: brokers and administrators. An answer that says done must be committed."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from random import Random
from typing import TYPE_CHECKING, Any

from kquorum.broker.lifecycle_states import BrokerState
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller_apis import HANDLERS
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kquorum.wire.messages.broker_registration import BrokerRegistrationRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.simulation.controllers.machines import BrokerMachine, ControllerMachine
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host
from tests.support.api_calls import read_answer, request_of

if TYPE_CHECKING:
    from tests.simulation.controllers.world import ControllerWorld

VERSIONS = {
    ApiKey.BROKER_REGISTRATION: 4,
    ApiKey.BROKER_HEARTBEAT: 1,
    ApiKey.CREATE_TOPICS: 7,
    ApiKey.DELETE_TOPICS: 6,
    ApiKey.CREATE_PARTITIONS: 3,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0,
    ApiKey.ELECT_LEADERS: 2,
    ApiKey.ALTER_PARTITION: 3,
}
# The share of steps in which a broker goes, beside what the schedule does to hosts.
RESTARTS = 0.05
NAMES = ("a", "b", "c", "d", "e.f", "g")
OnAnswer = Callable[[Any], None]


class Admin:
    def __init__(self, world: "ControllerWorld") -> None:
        self.world = world
        self._random = Random(world.seed ^ 0xAD31)
        self.done_topics: dict[Any, str] = {}
        # Brokers, with their epochs, that asked to be let go.
        self.leaving: set[tuple[int, int]] = set()

    def some_ms(self, most: int) -> int:
        return self._random.randint(0, most)

    # Asking

    def ask(
        self, source: Host | None, target: Host, api_key: ApiKey, values: Mapping[str, object], told: OnAnswer
    ) -> None:
        """`told` is called once: with the answer, or with None when none came in time."""
        is_open = [True]
        life = None if source is None else source.life

        def answered(answer: Any) -> None:
            if is_open[0] and (source is None or source.life == life):
                is_open[0] = False
                told(answer)

        if self._is_reachable(source, target):
            self.world.at(
                self._delay_ms(), self._arrives, source, target, target.life, api_key, values, answered
            )
        self.world.at(self.world.options.fetch_timeout_ms, answered, None)

    def _arrives(
        self,
        source: Host | None,
        target: Host,
        life: int,
        api_key: ApiKey,
        values: Mapping[str, object],
        answered: OnAnswer,
    ) -> None:
        if target.life != life or target.node is None:
            return
        machine = self.world.machine_of(target)
        if not isinstance(machine, ControllerMachine):
            return
        pause_ms = target.paused_until_ms - self.world.now_ms
        if pause_ms > 0:
            self.world.at(pause_ms, self._arrives, source, target, life, api_key, values, answered)
            return
        version = VERSIONS[api_key]
        body = request_of(api_key, version, values)

        def reply(response: Response) -> None:
            answer = read_answer(api_key, version, response)
            self._check_done(machine, api_key, values, answer)
            if self._is_reachable(target, source):
                self.world.at(self._delay_ms(), answered, answer)

        if values.get("want_shut_down"):
            self.leaving.add((int(str(values["broker_id"])), int(str(values["broker_epoch"]))))
        request = ControllerRequest(api_key=api_key, api_version=version, body=body)
        machine.controller.handle_request(machine.now_ms, request, reply)
        machine.arm()
        self.world.turn_soon(target)

    def _is_reachable(self, source: Host | None, target: Host | None) -> bool:
        if source is None or target is None:
            return True
        network = self.world.network
        return (
            not network.is_cut(source.node_id, target.node_id)
            and self._random.random() >= network.weather.loss
        )

    def _delay_ms(self) -> int:
        return self._random.randint(0, self.world.network.weather.delay_ms_max)

    # Brokers

    def ask_for_broker(
        self, machine: BrokerMachine, request: BrokerRegistrationRequest | BrokerHeartbeatRequest
    ) -> None:
        node = machine.host.node
        target = self.world.hosts.get(node.leader_id) if node is not None else None
        told = (
            self._registered if isinstance(request, BrokerRegistrationRequest) else self._heartbeat_answered
        )
        if target is None:
            machine.lifecycle.handle_failure(machine.now_ms)
            return

        def answered(answer: Any) -> None:
            if answer is None:
                machine.lifecycle.handle_failure(machine.now_ms)
            else:
                told(machine, answer)
            machine.arm()

        self.ask(machine.host, target, ApiKey(request.api_key), asdict(request), answered)

    def _registered(self, machine: BrokerMachine, answer: Any) -> None:
        machine.lifecycle.handle_registration_reply(machine.now_ms, answer.error_code, answer.broker_epoch)

    def _heartbeat_answered(self, machine: BrokerMachine, answer: Any) -> None:
        machine.lifecycle.handle_heartbeat_reply(
            machine.now_ms,
            error=answer.error_code,
            is_caught_up=answer.is_caught_up,
            is_fenced=answer.is_fenced,
            should_shut_down=answer.should_shut_down,
        )
        if machine.lifecycle.state is BrokerState.SHUTTING_DOWN:
            self.world.note("broker %d may go", machine.host.node_id)
            self.world.tally["controlled shutdowns"] += 1
            self.world.end_process(machine.host)

    # Clients

    def operate(self, host: Host) -> None:
        """One change, asked of a host that says it leads or of any; or an ISR that a broker changes."""
        if self.world.is_faulty and self._random.random() < RESTARTS:
            self._restart_broker()
        choice = self._random.random()
        if choice < 0.3:
            self._change_isr()
            return
        image = self.world.reference.image
        topics = list(image.topics.by_id.values())
        topic = self._random.choice(topics) if topics else None
        api_key, values = self._change(choice, topic)
        if api_key not in HANDLERS:
            return
        begun_ms = self.world.now_ms

        def told(answer: Any) -> None:
            if answer is not None and _is_all_well(answer):
                self.world.tally["changes done"] += 1
                history = self.world.clients.history
                history.last_acknowledged_begun_ms = max(history.last_acknowledged_begun_ms, begun_ms)
                history.acknowledged[len(history.acknowledged)] = b""

        self.ask(None, host, api_key, values, told)

    def _restart_broker(self) -> None:
        """One of them is killed, or goes in good order; it comes back as another incarnation."""
        brokers = [host for host in self.world.hosts.values() if not host.can_be_voter]
        host = self._random.choice(brokers)
        for_ms = self._random.randint(1, 2 * self.world.session_ms)
        if self._random.random() < 0.5:
            self.world.crash_and_revive(host, for_ms)
        else:
            self.world.shut_down(host, for_ms)

    def _change(self, choice: float, topic: TopicImage | None) -> tuple[ApiKey, Mapping[str, object]]:
        if topic is None or choice < 0.55:
            return ApiKey.CREATE_TOPICS, self._creation()
        if choice < 0.65:
            names = [{"name": topic.name, "topic_id": None}]
            return ApiKey.DELETE_TOPICS, {"topics": names, "timeout": 1000}
        if choice < 0.72:
            count = len(topic.partitions) + self._random.randint(0, 2)
            entry = {"name": topic.name, "count": count, "assignments": None}
            return ApiKey.CREATE_PARTITIONS, {"topics": [entry], "timeout": 1000, "validate_only": False}
        if choice < 0.84:
            value = str(self._random.randint(1000, 9999))
            config = {"name": "retention.ms", "config_operation": 0, "value": value}
            resource = {"resource_type": 2, "resource_name": topic.name, "configs": [config]}
            return ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": [resource], "validate_only": False}
        if choice < 0.94:
            brokers = sorted(self.world.reference.image.cluster.brokers)
            replicas = self._random.sample(brokers, min(len(brokers), self._random.randint(1, 3)))
            partition = {
                "partition_index": self._random.randrange(len(topic.partitions) or 1),
                "replicas": replicas if self._random.random() < 0.8 else None,
            }
            entry = {"name": topic.name, "partitions": [partition]}
            return ApiKey.ALTER_PARTITION_REASSIGNMENTS, {"topics": [entry], "timeout": 1000}
        return ApiKey.ELECT_LEADERS, {"election_type": 0, "topic_partitions": None, "timeout": 1000}

    def _creation(self) -> Mapping[str, object]:
        entry = {
            "name": self._random.choice(NAMES),
            "num_partitions": self._random.randint(1, 4),
            "replication_factor": self._random.randint(1, 3),
            "assignments": (),
            "configs": (),
        }
        return {"topics": [entry], "timeout": 1000, "validate_only": False}

    def _change_isr(self) -> None:
        """A broker that leads tells who is in sync: all that live, or itself alone."""
        machines = [
            m
            for m in self.world.machines.values()
            if isinstance(m, BrokerMachine) and m.is_alive and m.is_serving
        ]
        if not machines:
            return
        machine = self._random.choice(machines)
        led = [
            (topic, partition_id)
            for topic in machine.image.topics.by_id.values()
            for partition_id, state in topic.partitions.items()
            if state.leader == machine.host.node_id
        ]
        node = machine.host.node
        target = self.world.hosts.get(node.leader_id) if node is not None else None
        if not led or target is None or ApiKey.ALTER_PARTITION not in HANDLERS:
            return
        topic, partition_id = self._random.choice(led)
        state = topic.partitions.get(partition_id)
        assert state is not None
        brokers = machine.image.cluster.brokers
        alive = [each for each in state.replicas if each in brokers and brokers[each].is_active]
        isr = alive if self._random.random() < 0.7 else [machine.host.node_id]
        partition = {
            "partition_index": partition_id,
            "leader_epoch": state.leader_epoch,
            "new_isr_with_epochs": [
                {"broker_id": each, "broker_epoch": brokers[each].epoch} for each in isr if each in brokers
            ],
            "leader_recovery_state": 0,
            "partition_epoch": state.partition_epoch,
        }
        values = {
            "broker_id": machine.host.node_id,
            "broker_epoch": machine.lifecycle.broker_epoch,
            "topics": [{"topic_id": topic.id, "partitions": [partition]}],
        }
        self.ask(machine.host, target, ApiKey.ALTER_PARTITION, values, lambda _: None)

    # What was answered

    def _check_done(
        self, machine: ControllerMachine, api_key: ApiKey, values: Mapping[str, Any], answer: Any
    ) -> None:
        """What a controller says it did is committed when it says so."""
        self.world.reference.catch_up()
        check = _CHECKS.get(api_key)
        if check is not None:
            check(self, machine.host.node_id, values, answer)

    def _check_registration(self, who: int, values: Mapping[str, Any], answer: Any) -> None:
        if answer.error_code is not ErrorCode.none:
            return
        self.world.tally["registrations"] += 1
        granted = self.world.reference.registrations.get(answer.broker_epoch)
        if granted != (values["broker_id"], values["incarnation_id"]):
            raise InvariantBroken(
                f"node {who} grants broker {values['broker_id']} an epoch that is not committed"
            )

    def _check_creation(self, who: int, _values: Mapping[str, Any], answer: Any) -> None:
        for entry in answer.topics:
            if entry.error_code is ErrorCode.none:
                self._check_topic(who, entry)

    def _check_deletion(self, who: int, _values: Mapping[str, Any], answer: Any) -> None:
        removed = self.world.reference.removed_topic_ids
        for entry in answer.responses:
            if entry.error_code is ErrorCode.none and entry.topic_id not in removed:
                raise InvariantBroken(f"node {who} says that topic {entry['name']} is deleted, and it is not")

    def _check_configs(self, who: int, values: Mapping[str, Any], answer: Any) -> None:
        known = self.world.reference.config_values
        for asked, entry in zip(values["resources"], answer.responses, strict=True):
            config = asked["configs"][0]
            change = (asked["resource_name"], config["name"], config["value"])
            if int(entry.error_code) == 0 and change not in known:
                raise InvariantBroken(f"node {who} says that {change} is set, and it is not committed")

    def _check_topic(self, who: int, entry: Any) -> None:
        if entry.topic_id not in self.world.reference.known_topic_ids:
            raise InvariantBroken(
                f"node {who} says that topic {entry['name']} is made, and it is not committed"
            )
        self.done_topics[entry.topic_id] = entry.name

    def _check_heartbeat(self, who: int, values: Mapping[str, Any], answer: Any) -> None:
        if answer.error_code is not ErrorCode.none:
            return
        reference, broker_id = self.world.reference, values["broker_id"]
        if not answer.is_fenced and (broker_id, values["broker_epoch"]) not in reference.unfenced:
            raise InvariantBroken(
                f"node {who} tells broker {broker_id} that it is unfenced, and it is not committed"
            )
        broker = reference.image.cluster.brokers.get(broker_id)
        is_same = broker is not None and broker.epoch == values["broker_epoch"]
        if answer.should_shut_down and is_same and reference.image.topics.is_leading_any(broker_id):
            raise InvariantBroken(f"node {who} lets broker {broker_id} go, which leads")


_CHECKS: Mapping[ApiKey, Callable[[Admin, int, Mapping[str, Any], Any], None]] = {
    ApiKey.BROKER_REGISTRATION: Admin._check_registration,
    ApiKey.BROKER_HEARTBEAT: Admin._check_heartbeat,
    ApiKey.CREATE_TOPICS: Admin._check_creation,
    ApiKey.DELETE_TOPICS: Admin._check_deletion,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Admin._check_configs,
}


def _is_all_well(answer: Any) -> bool:
    """Whether every entry went well."""
    lists = ("topics", "responses", "results")
    entries = next((getattr(answer, name) for name in lists if hasattr(answer, name)), ())
    return all(getattr(each, "error_code", ErrorCode.none) is ErrorCode.none for each in (answer, *entries))
