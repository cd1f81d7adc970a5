"""Random streams of what happens to a consumer group: the coordinator beside the plain model, with clients that lose
answers, forge epochs and stay away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from kquorum.broker.groups.consumer_group import ConsumerGroup
from tests.support.broker.consumer_model import Beat, Place, PlainGroup
from tests.support.broker.consumer_world import INTERVAL_MS, REBALANCE_MS, SESSION_MS, ConsumerWorld
from tests.support.broker.data_world import ORDERS
from tests.support.broker.group_world import GROUP, error_of_commit
from tests.support.images import partition_record, topic_id

TOPICS = {ORDERS: 1, "second": 21, "third": 22, "fourth": 23}


class Divergence(AssertionError):
    """The coordinator did another thing than the model."""


@dataclass
class Client:
    """`owned` are the partitions that it uses: it gives one up when an answer says so, and not before."""

    member_id: str
    instance: str | None
    topics: frozenset[str]
    epoch: int = 0
    owned: set[Place] = field(default_factory=set)
    to_have: set[Place] | None = None
    lost_answer: bool = False
    """The next request says all, so that its answer does too."""


class ConsumerStream:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.has_follower = self.random.random() < 0.3
        self.world = ConsumerWorld(has_follower=self.has_follower)
        self.model = PlainGroup(SESSION_MS, INTERVAL_MS, REBALANCE_MS, {ORDERS: 4})
        self.clients: list[Client] = []
        self.next_id = 0

    def run(self, steps: int) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [
            (40, self.beat),
            (8, self.join),
            (6, self.leave),
            (4, self.forge),
            (12, self.wait),
            (2, self.stay_away),
            (4, self.change_topics),
            (4, self.change_subscription),
            (3, self.fail_over),
            (6, self.commit),
            (3, self.hold_on),
        ]
        for _ in range(steps):
            [action] = self.random.choices([each for _, each in actions], [weight for weight, _ in actions])
            action()
            self.compare()
        self.settle()

    # Actions

    def join(self) -> None:
        if len(self.clients) >= 6:
            return
        self.next_id += 1
        instance = self.random.choice([None, None, "i-1", "i-2"])
        some = self.random.sample(sorted(TOPICS), self.random.randint(0, 3))
        client = Client(f"m-{self.next_id}", instance, frozenset(some))
        if self.ask(client, client.topics) == "none":
            self.clients = [
                each for each in self.clients if instance is None or each.instance != instance
            ] + [client]

    def beat(self) -> None:
        if self.clients:
            client = self.random.choice(self.clients)
            self.ask(client, client.topics if client.epoch == 0 else None)

    def change_subscription(self) -> None:
        if self.clients:
            client = self.random.choice(self.clients)
            client.topics = frozenset(self.random.sample(sorted(TOPICS), self.random.randint(0, 3)))
            self.ask(client, client.topics)

    def leave(self) -> None:
        if not self.clients:
            return
        client = self.random.choice(self.clients)
        epoch = -2 if client.instance is not None and self.random.random() < 0.6 else -1
        beat = Beat(client.member_id, epoch, instance=client.instance)
        expected = self.model.refusal(beat)
        self.expect(expected or "none", self.send(beat).error_code.name, beat)
        if expected is None:
            self.model.leave(beat)
        if epoch == -1 or expected is not None:
            self.clients.remove(client)
            return
        # The same process, or another one, comes back under the instance's id.
        client.epoch, client.owned, client.to_have = 0, set(), None
        if self.random.random() < 0.5:
            self.next_id += 1
            client.member_id = f"m-{self.next_id}"

    def forge(self) -> None:
        """Ids and epochs that are none, or others'."""
        ids = [each.member_id for each in self.clients] + ["forged"]
        epoch = self.random.choice([1, 2, 3, self.model.epoch, self.model.epoch + 1, 1 << 30, -1, -2])
        owned = self.random.choice([None, frozenset(), frozenset({(ORDERS, 0)}), frozenset({(ORDERS, 99)})])
        instance = self.random.choice([None, None, "i-1", "forged"])
        if epoch == -2 and instance is None:
            return
        member_id = self.random.choice(ids)
        member = self.model.members.get(member_id)
        if member is not None and member.previous > 0 and self.random.random() < 0.5:
            epoch, instance = member.previous, member.instance
        beat = Beat(member_id, epoch, owned=owned, instance=instance)
        expected = self.model.refusal(beat)
        if expected is None:
            return
        self.expect(expected, self.send(beat).error_code.name, beat)

    def wait(self) -> None:
        self.pass_time(self.random.choice([1, 500, INTERVAL_MS, 5_000]))

    def stay_away(self) -> None:
        """Long enough for some sessions to end."""
        self.pass_time(self.random.choice([SESSION_MS // 2, SESSION_MS]))

    def change_topics(self) -> None:
        name = self.random.choice(sorted(TOPICS))
        count = self.model.partitions.get(name, 0)
        if count == 0:
            count = self.random.randint(1, 3)
            self.world.create_topic(TOPICS[name], name, count)
        elif count < 7:
            self.world.change(partition_record(TOPICS[name], count, (1, 2)))
            count += 1
        self.model.change_topic(name, count)

    def fail_over(self) -> None:
        if self.has_follower:
            self.world.follow()
        self.world.fail_over()
        self.model.fail_over(self.world.now_ms)

    def hold_on(self) -> None:
        """A client does not give up what it is to, while all send heartbeats."""
        holding = [
            client
            for client in self.clients
            if client.member_id in self.model.members and self.model.members[client.member_id].gives
        ]
        if not holding:
            return
        for _ in range(REBALANCE_MS // 10_000 + 1):
            self.pass_time(10_000)
            for client in list(self.clients):
                topics = client.topics if client.epoch == 0 else None
                self.ask(client, topics, is_reliable=True, holds=client is holding[0])
            self.compare()

    def commit(self) -> None:
        if not self.clients:
            return
        client = self.random.choice(self.clients)
        member = self.model.members.get(client.member_id)
        epoch = client.epoch if self.random.random() < 0.8 else self.random.randint(1, 9)
        if epoch < 1:
            return
        asked = self.world.commit(7, member_id=client.member_id, generation_id_or_member_epoch=epoch, index=0)
        if asked.is_waiting:
            self.world.follow()
        found = error_of_commit(asked)
        if member is None:
            expected = ["unknown_member_id" if self.model.exists else "group_id_not_found"]
        elif epoch == member.epoch:
            expected = ["none"]
        elif epoch > member.epoch or (ORDERS, 0) not in member.has | member.gives:
            expected = ["stale_member_epoch"]
        else:
            # At which epoch the member got the partition is not in the model.
            expected = ["none", "stale_member_epoch"]
        if found not in expected:
            raise Divergence(f"a commit at epoch {epoch} of {client}: {found}, not {expected}")

    # Parts

    def pass_time(self, ms: int) -> None:
        self.world.pass_time(ms)
        if self.has_follower:
            self.world.follow()
        self.model.pass_time(self.world.now_ms)

    def ask(
        self, client: Client, topics: frozenset[str] | None, *, is_reliable: bool = False, holds: bool = False
    ) -> str:
        """`is_reliable`: no answer is lost, the client says what it has, and does at once what it is to do, unless it
        `holds` what it has."""
        joins = client.epoch == 0
        is_full = joins or client.lost_answer
        says_owned = is_full or is_reliable or self.random.random() < 0.7
        owned = frozenset() if joins else frozenset(client.owned)
        beat = Beat(
            client.member_id,
            client.epoch,
            client.topics if is_full else topics,
            owned if says_owned else None,
            client.instance,
            says_timeout=is_full,
        )
        expected = self.model.refusal(beat)
        answer = self.send(beat)
        found = answer.error_code.name
        self.expect(expected or "none", found, beat)
        if expected is not None:
            if found in ("fenced_member_epoch", "unknown_member_id", "group_id_not_found"):
                client.epoch, client.owned, client.to_have = 0, set(), None
            return found
        epoch, told = self.model.beat(self.world.now_ms, beat, self.targets())
        self.expect(epoch, answer.member_epoch, beat)
        assigned = self.assignment(answer)
        self.expect(told, assigned, beat)
        if not is_reliable and self.random.random() < 0.15:
            # The answer is lost, and the client goes on as before.
            client.lost_answer = True
            return found
        client.lost_answer = False
        client.epoch = answer.member_epoch
        if assigned is not None:
            client.to_have = assigned
        if client.to_have is not None and not holds and (is_reliable or self.random.random() < 0.8):
            self.use(client, client.to_have)
        return found

    def use(self, client: Client, places: set[Place]) -> None:
        """What it gains no other living member may use."""
        gained = places - client.owned
        for other in self.clients:
            if other is not client and other.member_id in self.model.members and other.owned & gained:
                raise Divergence(f"{client} and {other} use {other.owned & gained}")
        client.owned, client.to_have = set(places), None

    def send(self, beat: Beat) -> Any:
        owned: dict[UUID, set[int]] | None = None
        if beat.owned is not None:
            owned = {}
            for topic, index in beat.owned:
                owned.setdefault(topic_id(TOPICS[topic]), set()).add(index)
        before = self.world.count()
        asked = self.world.heartbeat(
            beat.member_id,
            beat.epoch,
            topics=beat.topics,
            owned=owned,
            instance_id=beat.instance,
            rebalance_ms=REBALANCE_MS if beat.says_timeout else -1,
        )
        if self.has_follower and self.world.count() > before and not asked.is_waiting:
            raise Divergence(f"{beat} is answered before its records are replicated")
        if asked.is_waiting:
            self.world.follow()
        return asked.answer

    def group(self) -> ConsumerGroup | None:
        return self.world.shard().consumers.get(GROUP)

    def targets(self) -> dict[str, set[Place]]:
        group = self.group()
        if group is None:
            return {}
        return {
            member_id: {(self.name(topic), index) for topic, part in target.items() for index in part}
            for member_id, target in group.targets.items()
        }

    def assignment(self, answer: Any) -> set[Place] | None:
        if answer.assignment is None:
            return None
        return {
            (self.name(each.topic_id), index)
            for each in answer.assignment.topic_partitions
            for index in each.partitions
        }

    def name(self, found: UUID) -> str:
        return next(name for name, number in TOPICS.items() if topic_id(number) == found)

    def expect(self, expected: object, found: object, what: object) -> None:
        if expected != found:
            raise Divergence(f"{what}: {found}, not {expected}")

    def compare(self) -> None:
        """The coordinator's state is the model's, and what the next coordinator would load."""
        self.model.owners()
        group = self.group()
        if group is None:
            self.expect(False, self.model.exists, "whether the group exists")
            return
        self.expect(self.model.epoch, group.epoch, "the group epoch")
        self.expect(self.model.assigned_epoch, group.assignment_epoch, "the assignment epoch")
        self.expect(set(self.model.members), set(group.members), "the members")
        for member_id, member in self.model.members.items():
            kept = group.members[member_id]
            self.expect(
                (member.epoch, member.previous), (kept.epoch, kept.previous_epoch), f"epochs of {member_id}"
            )
            for places, assigned in ((member.has, kept.assigned), (member.gives, kept.pending_revocation)):
                found = {(self.name(topic), index) for topic, part in assigned.items() for index in part}
                self.expect(places, found, f"partitions of {member_id}")

    def settle(self) -> None:
        """When all beat and nothing else happens, each partition that is read gets to its member, at the latest when
        the sessions of members end whose clients are gone."""
        for _ in range(2 * SESSION_MS // INTERVAL_MS):
            self.pass_time(INTERVAL_MS)
            for client in list(self.clients):
                topics = client.topics if client.epoch == 0 else None
                found = self.ask(client, topics, is_reliable=True)
                if found == "unreleased_instance_id":
                    self.clients.remove(client)
            self.compare()
            group = self.group()
            if group is None or self.is_settled(group):
                return
        raise Divergence(f"the group does not settle: {self.group()}")

    def is_settled(self, group: ConsumerGroup) -> bool:
        if not self.clients:
            return True
        return group.state.value == "Stable" and all(
            client.owned == self.model.members[client.member_id].has
            for client in self.clients
            if client.member_id in self.model.members
        )
