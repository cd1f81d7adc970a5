"""Hypothesis runs the controller and the model through the same requests and compares them after each."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from tests.reference_model import requests
from tests.reference_model.objects import NO_BROKER
from tests.reference_model.twin import Twin

BROKERS = st.integers(1, 5)


TOPICS = st.sampled_from(["a", "b"])


NO_SUCH_PLACES = [("a", 3), ("c", 0)]


REPLICAS = st.lists(BROKERS, min_size=1, max_size=4, unique=True)


ANY_REPLICAS = st.lists(st.integers(1, 6), max_size=4)


MIN_ISR = st.sampled_from(["1", "2", "3", None])


UNCLEAN = st.sampled_from(["true", "false", None])


SLIPS = st.sampled_from([(0, 0)] * 6 + [(1, 0), (-1, 0), (0, 1), (0, -1)])


OFTEN = st.sampled_from([True, True, True, False])


SELDOM = st.sampled_from([False, False, False, False, True])


class ControllerAgainstModel(RuleBasedStateMachine):
    twin: Twin

    @initialize(
        level=st.sampled_from([5, 7, 11, 14, 25]),
        has_elr=st.booleans(),
        count=st.integers(2, 5),
        replicas=st.permutations([1, 2, 3, 4, 5]),
        factor=st.integers(1, 4),
        minimum=MIN_ISR,
    )
    def begin(
        self, level: int, has_elr: bool, count: int, replicas: list[int], factor: int, minimum: str | None
    ) -> None:
        self.twin = Twin(level=25 if has_elr else level, has_elr=has_elr)
        self.incarnations = 0
        for broker_id in range(1, count + 1):
            requests.register(self.twin, broker_id, self.next_incarnation())
            requests.heartbeat(self.twin, broker_id)
        configs = {} if minimum is None else {"min.insync.replicas": minimum}
        chosen = [each for each in replicas if each <= count][:factor]
        requests.create_topic(self.twin, "a", [chosen, chosen[::-1]], configs)

    def next_incarnation(self) -> int:
        self.incarnations += 1
        return self.incarnations

    # Brokers

    @rule(broker_id=BROKERS, is_clean=st.booleans())
    def a_broker_starts(self, broker_id: int, is_clean: bool) -> None:
        requests.register(self.twin, broker_id, self.next_incarnation(), is_clean=is_clean)

    @rule(broker_id=BROKERS)
    def a_broker_crashes_and_comes_back(self, broker_id: int) -> None:
        self.others_live_on(broker_id)
        requests.register(self.twin, broker_id, self.next_incarnation())
        requests.heartbeat(self.twin, broker_id)

    @rule(broker_id=BROKERS)
    def a_broker_registers_again(self, broker_id: int) -> None:
        known = self.twin.model.brokers.get(broker_id)
        if known is not None:
            requests.register(self.twin, broker_id, known.incarnation)

    @rule(broker_id=BROKERS, has_read=OFTEN, want_fence=SELDOM, want_shut_down=SELDOM, stale=SELDOM)
    def a_heartbeat(
        self, broker_id: int, has_read: bool, want_fence: bool, want_shut_down: bool, stale: bool
    ) -> None:
        requests.heartbeat(
            self.twin,
            broker_id,
            has_read=has_read,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            epoch_slip=-1 if stale else 0,
        )

    @rule(broker_id=BROKERS, place=st.integers(0, 1), unfences=OFTEN)
    def a_directory_fails(self, broker_id: int, place: int, unfences: bool) -> None:
        offline = (min(place, len(requests.directories_of(broker_id)) - 1),)
        requests.heartbeat(self.twin, broker_id, offline=offline, want_fence=not unfences)

    @rule(data=st.data(), place=st.integers(0, 1), odd=BROKERS)
    def a_replica_is_assigned_a_directory(self, data: st.DataObject, place: int, odd: int) -> None:
        name, index = self.place(data)
        _, replicas = self.leader_and_replicas(name, index)
        broker_id = data.draw(st.sampled_from([*replicas * 4, odd]))
        requests.assign_directory(self.twin, broker_id, name, index, place)

    @rule()
    def all_are_heard_of(self) -> None:
        self.others_are_heard_of(silent=NO_BROKER)

    @rule(broker_id=BROKERS)
    def a_broker_falls_silent(self, broker_id: int) -> None:
        self.others_live_on(broker_id)

    def others_live_on(self, silent: int) -> None:
        for _ in range(2):
            self.twin.pass_time(5_000)
            self.others_are_heard_of(silent)

    def others_are_heard_of(self, silent: int) -> None:
        for broker_id in sorted(self.twin.model.brokers):
            if broker_id != silent:
                requests.heartbeat(self.twin, broker_id)

    @rule(milliseconds=st.sampled_from([1, 3_000, 9_000, 9_001]))
    def time_passes(self, milliseconds: int) -> None:
        self.twin.pass_time(milliseconds)

    @rule(broker_id=BROKERS)
    def a_broker_leaves(self, broker_id: int) -> None:
        for _ in range(3):
            requests.heartbeat(self.twin, broker_id, want_shut_down=True)

    @rule(broker_id=BROKERS, really=SELDOM)
    def a_broker_is_unregistered(self, broker_id: int, really: bool) -> None:
        if really:
            requests.unregister(self.twin, broker_id)

    # Topics

    @rule(name=TOPICS, replicas=st.lists(REPLICAS, min_size=1, max_size=2), configs=st.fixed_dictionaries(
        {"min.insync.replicas": MIN_ISR, "unclean.leader.election.enable": UNCLEAN}))  # fmt: skip
    def a_topic_is_created(
        self, name: str, replicas: list[list[int]], configs: dict[str, str | None]
    ) -> None:
        given = {key: value for key, value in configs.items() if value is not None}
        requests.create_topic(self.twin, name, replicas, given)

    @rule(name=TOPICS, count=st.integers(1, 3), replicas=REPLICAS)
    def a_topic_of_equal_partitions(self, name: str, count: int, replicas: list[int]) -> None:
        requests.create_topic(self.twin, name, [replicas] * count, {})

    @rule(name=TOPICS, replicas=st.lists(ANY_REPLICAS, min_size=1, max_size=2), data=st.data())
    def a_topic_is_perhaps_created(self, name: str, replicas: list[list[int]], data: st.DataObject) -> None:
        if self.twin.model.topics.get(name) is not None and data.draw(OFTEN):
            requests.delete_topic(self.twin, name)
        requests.create_topic(self.twin, name, replicas, {})

    @rule(name=TOPICS, count=st.integers(1, 3), factor=st.integers(1, 4), data=st.data())
    def a_topic_is_placed(self, name: str, count: int, factor: int, data: st.DataObject) -> None:
        if self.twin.model.topics.get(name) is not None and data.draw(OFTEN):
            requests.delete_topic(self.twin, name)
        requests.place_topic(self.twin, name, count, factor)

    @rule(name=TOPICS, really=SELDOM)
    def a_topic_is_deleted(self, name: str, really: bool) -> None:
        if really:
            requests.delete_topic(self.twin, name)

    @rule(name=TOPICS, data=st.data(), count=st.integers(1, 4))
    def partitions_are_added(self, name: str, data: st.DataObject, count: int) -> None:
        topic = self.twin.model.topics.get(name)
        present = 0 if topic is None else len(topic.partitions)
        factor = 1 if topic is None else len(topic.partitions[0].replicas)
        same = st.lists(BROKERS, min_size=factor, max_size=factor, unique=True)
        replicas = [data.draw(same | ANY_REPLICAS) for _ in range(max(1, count - present))]
        requests.create_partitions(self.twin, name, count, replicas)

    # Partitions

    def place(self, data: st.DataObject) -> tuple[str, int]:
        """Of a partition that exists, nearly always."""
        there = [(name, index) for name, index, _ in self.twin.model.places()]
        return data.draw(st.sampled_from(there * 5 + NO_SUCH_PLACES))

    @rule(data=st.data(), slip=SLIPS, is_recovering=SELDOM, stale=SELDOM)
    def a_leader_reports(
        self, data: st.DataObject, slip: tuple[int, int], is_recovering: bool, stale: bool
    ) -> None:
        name, index = self.place(data)
        leader, replicas = self.leader_and_replicas(name, index)
        isr = data.draw(st.lists(st.sampled_from(replicas), max_size=4, unique=True))
        sender = data.draw(st.sampled_from([leader] * 5 + replicas))
        with_leader = [leader, *(each for each in isr if each != leader)]
        chosen = data.draw(st.sampled_from([with_leader] * 4 + [isr]))
        requests.alter_partition(
            self.twin, sender, name, index, chosen, slip=slip, is_recovering=is_recovering, stale_member=stale
        )

    @rule(data=st.data(), silent=BROKERS)
    def a_leader_reports_before_the_controller_looks(self, data: st.DataObject, silent: int) -> None:
        name, index = self.place(data)
        self.twin.pass_time(5_000)
        self.others_are_heard_of(silent)
        self.twin.be_late(4_001)
        leader, replicas = self.leader_and_replicas(name, index)
        requests.alter_partition(self.twin, leader, name, index, replicas)
        self.twin.pass_time(0)

    @rule()
    def all_leaders_report_who_is_up(self) -> None:
        active = self.twin.model.active()
        for name, index, part in self.twin.model.places():
            in_sync = [each for each in part.replicas if each in active]
            if part.leader in in_sync:
                requests.alter_partition(self.twin, part.leader, name, index, in_sync)

    def leader_and_replicas(self, name: str, index: int) -> tuple[int, list[int]]:
        topic = self.twin.model.topics.get(name)
        if topic is None or index >= len(topic.partitions):
            return 1, [1, 2]
        part = topic.partitions[index]
        return (part.leader if part.leader > 0 else part.replicas[0]), part.replicas

    @rule(data=st.data(), unclean=st.booleans())
    def a_leader_is_elected(self, data: st.DataObject, unclean: bool) -> None:
        name, index = self.place(data)
        requests.elect_leader(self.twin, name, index, unclean=unclean)

    @rule(data=st.data())
    def the_preferred_leader_comes_back(self, data: st.DataObject) -> None:
        name, index = self.place(data)
        leader, _ = self.leader_and_replicas(name, index)
        requests.heartbeat(self.twin, leader, want_fence=True)
        requests.heartbeat(self.twin, leader)
        self.all_leaders_report_who_is_up()
        requests.elect_leader(self.twin, name, index, unclean=False)

    @rule(survivors=st.lists(BROKERS, unique=True), unclean=st.booleans())
    def everybody_goes_and_some_come_back(self, survivors: list[int], unclean: bool) -> None:
        self.twin.pass_time(9_001)
        for broker_id in survivors:
            requests.heartbeat(self.twin, broker_id)
        for name, index, _ in self.twin.model.places():
            requests.elect_leader(self.twin, name, index, unclean=unclean)

    @rule(data=st.data(), odd=ANY_REPLICAS)
    def a_partition_is_reassigned(self, data: st.DataObject, odd: list[int]) -> None:
        name, index = self.place(data)
        registered = sorted(self.twin.model.brokers) or [1]
        usual = st.lists(st.sampled_from(registered), min_size=1, max_size=4, unique=True)
        wanted = data.draw(usual) if data.draw(OFTEN) else odd
        requests.reassign(self.twin, name, index, wanted)

    @rule(data=st.data(), is_regretted=st.booleans(), is_reported=st.booleans())
    def a_partition_moves(self, data: st.DataObject, is_regretted: bool, is_reported: bool) -> None:
        """To other places and, unless it is cancelled, all the way, if everybody is up."""
        name, index = self.place(data)
        active = sorted(self.twin.model.active()) or [1]
        places = st.lists(st.sampled_from(active), min_size=1, max_size=3, unique=True)
        requests.reassign(self.twin, name, index, data.draw(places))
        if is_reported:
            self.all_leaders_report_who_is_up()
        if is_regretted:
            requests.reassign(self.twin, name, index, None)

    @rule(data=st.data())
    def a_reassignment_is_cancelled(self, data: st.DataObject) -> None:
        moving = [
            (name, index) for name, index, part in self.twin.model.places() if part.adding or part.removing
        ]
        name, index = data.draw(st.sampled_from(moving)) if moving else self.place(data)
        requests.reassign(self.twin, name, index, None)

    @rule(name=st.sampled_from(["a", "b", ""]), value=MIN_ISR)
    def the_minimum_isr_is_set(self, name: str, value: str | None) -> None:
        requests.set_config(self.twin, name, "min.insync.replicas", value)

    @rule(name=st.sampled_from(["a", "b", ""]), value=UNCLEAN)
    def unclean_elections_are_set(self, name: str, value: str | None) -> None:
        requests.set_config(self.twin, name, "unclean.leader.election.enable", value)

    @rule(on=st.booleans())
    def eligible_leader_replicas_are_turned(self, on: bool) -> None:
        requests.turn_elr(self.twin, on=on)

    # Commits

    @rule()
    def commits_stop(self) -> None:
        self.twin.is_holding = True

    @rule(count=st.integers(0, 3))
    def some_is_committed(self, count: int) -> None:
        self.twin.commit_some(count)

    @rule()
    def commits_go_on(self) -> None:
        self.twin.is_holding = False
        self.twin.commit_some(len(self.twin.held))

    @rule(count=st.integers(0, 2))
    def another_controller_takes_over(self, count: int) -> None:
        self.twin.commit_some(count)
        self.twin.fail_over()
        self.twin.is_holding = False

    def teardown(self) -> None:
        if hasattr(self, "twin"):
            self.twin.commit_some(len(self.twin.held))


def run_stream(examples: int, steps: int, **changes: Any) -> None:
    limits = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **changes,
    )
    run_state_machine_as_test(ControllerAgainstModel, settings=limits)
