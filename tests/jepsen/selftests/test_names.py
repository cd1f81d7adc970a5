"""One name, one topic: what races and rebirths may end with, who does them, and when."""

import uuid
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.checkers.names import RACE, REBIRTH, Names
from tests.jepsen.checkers.set_full import SetFull
from tests.jepsen.checkers.set_lives import CREATE, DELETE, LIST
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Stats, Verdict, check_all
from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import not_sent, unanswered
from tests.jepsen.core.generator import SECOND_NS, Context, Phases, Turn, Wait
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.core.instant import drive, setup_of
from tests.jepsen.net.proxies import ProxyNetwork
from tests.jepsen.workloads.name_workers import FIRST_PARTITIONS, NameWorker
from tests.jepsen.workloads.topics_set import KIND, TopicsSet, element_of

FIRST, SECOND, THIRD = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
GOOD: Mapping[str, object] = {
    "name": "n",
    "first_id": FIRST,
    "second_id": SECOND,
    "shown_id": SECOND,
    "partitions": 1,
    "configs": {},
}


def history_of(*ends: tuple[str, OpType, Mapping[str, object]]) -> History:
    """All are invoked before the first one ends."""
    invoked = [
        Op(type=OpType.INVOKE, f=f, value={"name": value["name"]}, process=place)
        for place, (f, _, value) in enumerate(ends)
    ]
    ended = [op.ended(kind, value) for op, (_, kind, value) in zip(invoked, ends, strict=True)]
    return History([*invoked, *ended])


def raced(*kinds: OpType, names: str = "nnnn") -> History:
    ends = [(RACE, kind, {"name": name, "id": FIRST}) for kind, name in zip(kinds, names, strict=False)]
    return history_of(*ends)


def reborn(**changes: object) -> Results:
    return Names().check(history_of((REBIRTH, OpType.OK, {**GOOD, **changes})))


def test_a_history_without_races_and_rebirths_has_nothing_to_judge() -> None:
    results = Names().check(History())
    assert (results[VALID_KEY], results["names_raced_for"], results["rebirths"]) == (Verdict.VALID, 0, 0)


def test_a_name_that_at_most_one_racer_gets_is_valid() -> None:
    for kinds in ((OpType.OK, OpType.INFO), (OpType.OK, OpType.FAIL), (OpType.INFO, OpType.INFO)):
        assert Names().check(raced(*kinds))[VALID_KEY] is Verdict.VALID
    two_names = Names().check(raced(OpType.OK, OpType.OK, names="ab"))
    assert (two_names[VALID_KEY], two_names["races_won"]) == (Verdict.VALID, 2)


def test_a_name_that_two_get_is_created_twice() -> None:
    results = Names().check(raced(OpType.OK, OpType.OK))
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["created-twice"] == [{"name": "n", "ids": [FIRST, FIRST], "indexes": [2, 3]}]


def test_a_good_rebirth_is_valid() -> None:
    results = reborn()
    assert (results[VALID_KEY], results["rebirths"]) == (Verdict.VALID, 1)


@pytest.mark.parametrize(
    ("anomaly", "changes"),
    [
        ("wrong-id", {"second_id": FIRST, "shown_id": FIRST}),
        ("wrong-id", {"shown_id": THIRD}),
        ("left-over", {"partitions": FIRST_PARTITIONS}),
        ("left-over", {"partitions": 0}),
        ("left-over", {"configs": {"retention.ms": "3600001"}}),
    ],
)
def test_a_second_life_with_something_of_the_first_is_invalid(
    anomaly: str, changes: dict[str, object]
) -> None:
    results = reborn(**changes)
    assert results[VALID_KEY] is Verdict.INVALID
    counts = {each: results[f"{each}_count"] for each in ("created-twice", "wrong-id", "left-over")}
    assert counts == {"created-twice": 0, "wrong-id": 0, "left-over": 0} | {anomaly: 1}


def test_a_rebirth_in_doubt_is_not_judged() -> None:
    for kind in (OpType.INFO, OpType.FAIL):
        results = Names().check(history_of((REBIRTH, kind, {"name": "n"})))
        assert (results[VALID_KEY], results["rebirths"]) == (Verdict.VALID, 0)


def test_a_run_in_which_no_race_and_no_rebirth_succeeded_is_not_in_doubt() -> None:
    """Both are names of topics-set's own, which has been tested all the same."""
    history = history_of(
        (RACE, OpType.INFO, {"name": "n"}),
        (REBIRTH, OpType.INFO, {"name": "m"}),
        (CREATE, OpType.OK, {"name": "1"}),
    )
    assert Stats(KIND.incidental).check(history)[VALID_KEY] is Verdict.VALID
    assert not KIND.incidental & (KIND.writes | KIND.reads)


class Topics:
    """A sound cluster for TopicsSet, in a set."""

    def __init__(self) -> None:
        self.names: set[Any] = set()

    def answer(self, op: Op) -> Op:
        if op.f == LIST:
            return op.ended(OpType.OK, [name for name in self.names if isinstance(name, int)])
        if op.f == DELETE:
            self.names.discard(op.value)
            return op.ended(OpType.OK, op.value)
        if op.f == REBIRTH:
            return op.ended(OpType.OK, {**GOOD, **op.value})
        name = op.value["name"] if op.f == RACE else op.value
        if name in self.names:
            return op.ended(OpType.INFO, op.value, "TOPIC_ALREADY_EXISTS")
        self.names.add(name)
        return op.ended(OpType.OK, {**op.value, "id": FIRST} if op.f == RACE else op.value)


CLIENTS = 6


def driven(time_s: int) -> History:
    workload = TopicsSet(setup_of(6, concurrency=CLIENTS))
    whole = Phases(workload.main(time_s * SECOND_NS), workload.final())
    return drive(workload, whole, Topics().answer)


def test_two_race_for_each_name_and_no_name_is_used_again() -> None:
    asked = [op for op in driven(40) if op.type is OpType.INVOKE]
    racers: dict[str, list[int]] = {}
    for op in asked:
        if op.f == RACE:
            racers.setdefault(op.value["name"], []).append(op.process % (CLIENTS + 3))
    assert 10 < len(racers) < 40
    assert all(sorted(each) == [CLIENTS, CLIENTS + 1] for each in racers.values())
    assert {each[0] for each in racers.values()} == {CLIENTS, CLIENTS + 1}, "now one, now the other is first"
    names = [op.value["name"] for op in asked if op.f == REBIRTH]
    assert 10 < len(names) == len(set(names)) < 40
    assert len({op.value["retention_ms"] for op in asked if op.f == REBIRTH}) == len(names)


def test_the_set_is_left_alone() -> None:
    """Its elements are none of these names, and its clients do nothing else, in the final phase neither."""
    history = driven(15)
    asked = [op for op in history if op.type is OpType.INVOKE]
    for op in asked:
        is_of_set = op.process % (CLIENTS + 3) < CLIENTS
        assert is_of_set is (op.f in (CREATE, DELETE, LIST))
    assert all(element_of(op.value["name"]) is None for op in asked if op.f in (RACE, REBIRTH))
    assert {op.f for op in asked if op.final} == {CREATE, LIST}
    verdict = check_all([SetFull((11, 12)), Names(), Stats(KIND.incidental)], history)
    assert verdict[VALID_KEY] is Verdict.VALID


def test_the_last_phase_asks_nothing_of_those_who_race() -> None:
    workload = TopicsSet(setup_of(6, concurrency=CLIENTS))
    generator = workload.final()
    others = tuple(Turn(CLIENTS + place, CLIENTS + place, 11) for place in range(3))
    assert isinstance(generator.next(Context(0, others)), Wait)
    assert isinstance(generator.next(Context(0, (*others, Turn(0, 0, 11)))), Op)


def test_a_race_begins_only_when_both_can() -> None:
    workload = TopicsSet(setup_of(6, concurrency=CLIENTS))
    generator = workload.main(SECOND_NS)
    first, second = Turn(CLIENTS, CLIENTS, 11), Turn(CLIENTS + 1, CLIENTS + 1, 12)
    assert isinstance(generator.next(Context(0, (first,))), Wait)
    off = generator.next(Context(0, (first, second)))
    assert isinstance(off, Op)
    (other,) = {first, second} - {turn for turn in (first, second) if turn.process == off.process}
    late = generator.next(Context(0, (other,)))
    assert isinstance(late, Op)
    assert (late.process, late.value) == (other.process, off.value)


class Cluster:
    """A RawClient at a broker that shows a change `lag` requests for metadata later. `spoil` changes an answer."""

    def __init__(self, lag: int = 0, **spoil: object) -> None:
        self.asked: list[ApiKey] = []
        self.spoil = spoil
        self._lag = lag
        self._ids = 0
        self._topic: dict[str, Any] | None = None
        self._shown: list[dict[str, Any] | None] = []

    def request(self, api_key: ApiKey, values: Mapping[str, Any]) -> object:
        self.asked.append(api_key)
        if api_key is self.spoil.get("unanswered"):
            raise unanswered("no answer")
        answers = {
            ApiKey.CREATE_TOPICS: self._create,
            ApiKey.DELETE_TOPICS: self._delete,
            ApiKey.METADATA: self._metadata,
            ApiKey.DESCRIBE_CONFIGS: self._describe,
        }
        return answers[api_key](values)

    def close(self) -> None: ...

    def _create(self, values: Mapping[str, Any]) -> object:
        (asked,) = values["topics"]
        if self._topic is not None:
            return SimpleNamespace(topics=[SimpleNamespace(error_code=ErrorCode.topic_already_exists)])
        self._ids += 0 if self._ids and self.spoil.get("same_id") else 1
        topic_id = uuid.UUID(int=self._ids)
        self._topic = {**asked, "id": topic_id}
        self._shown += [self._topic]
        return SimpleNamespace(topics=[SimpleNamespace(error_code=ErrorCode.none, topic_id=topic_id)])

    def _delete(self, _: object) -> object:
        self._topic = None
        self._shown += [None]
        return SimpleNamespace(responses=[SimpleNamespace(error_code=ErrorCode.none)])

    def _metadata(self, _: object) -> object:
        """The first life, then none, then the second one, each for `lag` requests."""
        shown = self._shown[0] if self._lag else self._shown[-1]
        if self._lag and self.asked.count(ApiKey.METADATA) % self._lag == 0 and len(self._shown) > 1:
            self._shown.pop(0)
        if shown is None:
            unknown = SimpleNamespace(error_code=ErrorCode.unknown_topic_or_partition)
            return SimpleNamespace(topics=[unknown])
        topic = SimpleNamespace(
            error_code=ErrorCode.none,
            topic_id=self.spoil.get("shown_id", shown["id"]),
            partitions=(None,) * shown["num_partitions"],
        )
        return SimpleNamespace(topics=[topic])

    def _describe(self, _: object) -> object:
        left = cast("str | None", self.spoil.get("left"))
        own = [] if left is None else [SimpleNamespace(name="retention.ms", value=left, config_source=1)]
        default = SimpleNamespace(name="retention.bytes", value="-1", config_source=5)
        result = SimpleNamespace(error_code=ErrorCode.none, configs=[default, *own])
        return SimpleNamespace(results=[result])


def ended(cluster: Any, f: str = REBIRTH, timeout_s: float = 5.0) -> Op:
    worker = NameWorker(lambda: cast("RawClient", cluster), ProxyNetwork((), ()), timeout_s)
    worker.open()
    return worker.invoke(
        Op(type=OpType.INVOKE, f=f, value={"name": "n", "retention_ms": 3_600_007}, process=0)
    )


@pytest.mark.parametrize("lag", [0, 1, 2])
def test_a_rebirth_ends_with_what_the_broker_shows_of_the_second_life(lag: int) -> None:
    op = ended(Cluster(lag))
    assert (op.type, op.error) == (OpType.OK, None)
    assert op.value == {**GOOD, "retention_ms": 3_600_007}


def test_a_rebirth_tells_of_what_is_left_over_and_of_an_id_that_was_not_made() -> None:
    assert ended(Cluster(left="3600007")).value["configs"] == {"retention.ms": "3600007"}
    assert ended(Cluster(shown_id=uuid.UUID(int=3))).value["shown_id"] == THIRD


def test_a_rebirth_with_the_id_of_the_first_life_does_not_wait_for_another_one() -> None:
    told = ended(Cluster(same_id=True)).value
    assert (told["first_id"], told["second_id"], told["shown_id"]) == (FIRST, FIRST, FIRST)


@pytest.mark.parametrize(
    "unanswered_api",
    [ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.METADATA, ApiKey.DESCRIBE_CONFIGS],
)
def test_a_rebirth_of_which_one_step_has_no_answer_is_in_doubt(unanswered_api: ApiKey) -> None:
    cluster = Cluster(unanswered=unanswered_api)
    assert ended(cluster).type is OpType.INFO
    assert cluster.asked[-1] is unanswered_api, "nothing is done after that"


def test_a_rebirth_whose_time_is_over_goes_no_further() -> None:
    cluster = Cluster()
    op = ended(cluster, timeout_s=0.0)
    assert (op.type, op.error) == (OpType.INFO, "the time for a rebirth is over")
    assert cluster.asked == [ApiKey.CREATE_TOPICS]


def test_a_second_life_that_never_shows_is_in_doubt() -> None:
    """Also where the broker shows the first one for ever: it may be behind without reporting it."""
    op = ended(Cluster(shown_id=uuid.UUID(int=1)), timeout_s=0.1)
    assert (op.type, op.error) == (OpType.INFO, "the time for a rebirth is over")


def test_the_loser_of_a_race_does_not_get_success() -> None:
    """Nor that it surely is not: the broker may have asked twice."""
    cluster = Cluster()
    assert ended(cluster, RACE).value["id"] == FIRST
    second = ended(cluster, RACE)
    assert (second.type, second.error) == (OpType.INFO, "TOPIC_ALREADY_EXISTS")


class SilentCluster:
    def request(self, *_: object) -> object:
        raise not_sent("cannot connect")


def test_a_race_that_was_not_sent_surely_had_no_effect() -> None:
    assert ended(SilentCluster(), RACE).type is OpType.FAIL
    assert ended(SilentCluster(), REBIRTH).type is OpType.INFO
