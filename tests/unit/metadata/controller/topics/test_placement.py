"""Where new replicas go."""

from collections import Counter
from dataclasses import replace
from itertools import chain
from uuid import UUID

import pytest

from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.controller.topics.placement import StripedPlacer
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.calls import calls_of
from tests.support.controller_world import SeededRandomSource


def broker(
    broker_id: int, rack: str | None = None, *, fenced: bool = False, in_controlled_shutdown: bool = False
) -> BrokerRegistration:
    return BrokerRegistration(
        id=broker_id,
        epoch=1,
        incarnation_id=UUID(int=broker_id),
        rack=rack,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )


def racked(racks: int, per_rack: int) -> list[BrokerRegistration]:
    return [broker(rack * 10 + number, f"r{rack}") for rack in range(racks) for number in range(per_rack)]


def counted(*existing: tuple[int, ...]) -> tuple[Counter[int], Counter[int]]:
    """How many replicas each broker has of these partitions, and of how many it is the preferred one."""
    return Counter(chain.from_iterable(existing)), Counter(replicas[0] for replicas in existing)


@pytest.mark.parametrize("seed", range(20))
def test_replicas_are_on_different_racks_while_there_are_enough(seed: int) -> None:
    for replicas in StripedPlacer(racked(3, 2), SeededRandomSource(seed)).place(60, 3):
        assert len({replica // 10 for replica in replicas}) == 3


@pytest.mark.parametrize("seed", range(20))
def test_replicas_are_never_on_one_broker_twice(seed: int) -> None:
    brokers = [*racked(2, 3), broker(99), broker(98, fenced=True)]
    for replicas in StripedPlacer(brokers, SeededRandomSource(seed)).place(100, 8):
        assert len(set(replicas)) == 8


@pytest.mark.parametrize("seed", range(20))
def test_fenced_brokers_come_last_and_never_first(seed: int) -> None:
    brokers = [broker(0), broker(1), broker(2, fenced=True), broker(3, fenced=True)]
    for replicas in StripedPlacer(brokers, SeededRandomSource(seed)).place(50, 3):
        assert set(replicas[:2]) == {0, 1}
        assert replicas[2] in (2, 3)


def test_leaders_and_replicas_are_spread_evenly() -> None:
    placed = StripedPlacer([broker(number) for number in range(5)], SeededRandomSource()).place(500, 3)
    assert Counter(replicas[0] for replicas in placed) == dict.fromkeys(range(5), 100)
    assert all(abs(count - 300) < 30 for count in Counter(each for row in placed for each in row).values())


def test_neighbours_differ_once_every_broker_has_led() -> None:
    placed = StripedPlacer([broker(number) for number in range(6)], SeededRandomSource()).place(600, 2)
    assert len({replicas for replicas in placed if replicas[0] == 0}) > 3


def test_broker_in_controlled_shutdown_gets_nothing() -> None:
    brokers = [broker(0), broker(1), broker(2, in_controlled_shutdown=True)]
    assert {each for row in StripedPlacer(brokers, SeededRandomSource()).place(30, 2) for each in row} == {
        0,
        1,
    }


@pytest.mark.parametrize("seed", range(20))
def test_single_unfenced_broker_leads_everything(seed: int) -> None:
    brokers = [broker(0, fenced=True), broker(1), broker(2, fenced=True)]
    placed = StripedPlacer(brokers, SeededRandomSource(seed)).place(9, 3)
    assert {replicas[0] for replicas in placed} == {1}
    assert {replicas[1:] for replicas in placed} == {(0, 2), (2, 0)}


@pytest.mark.parametrize("seed", range(20))
def test_one_rack_is_a_ring(seed: int) -> None:
    """Kafka's way: in each round the replicas are neighbours, and each broker stands once in every place."""
    ring = [2, 3, 0, 1]
    placed = StripedPlacer([broker(each) for each in ring], SeededRandomSource(seed)).place(5, 3)
    for replicas in placed[:4]:
        assert replicas == tuple((replicas[0] + step) % 4 for step in range(3))
    for place in range(3):
        assert {replicas[place] for replicas in placed[:4]} == {0, 1, 2, 3}


@pytest.mark.parametrize("seed", range(20))
def test_racks_take_turns_and_fenced_brokers_of_a_rack_are_last(seed: int) -> None:
    """Kafka's multi-rack layout: racks of two brokers; one rack has a fenced broker."""
    brokers = [
        *(broker(each, "1") for each in (10, 11)),
        *(broker(each, "2", fenced=each == 20) for each in (20, 21)),
        *(broker(each, "3") for each in (30, 31)),
    ]
    for replicas in StripedPlacer(brokers, SeededRandomSource(seed)).place(20, 4):
        racks = [replica // 10 for replica in replicas]
        assert sorted(racks[:3]) == [1, 2, 3]
        assert racks[3] == racks[0]
        assert replicas[0] != 20
        assert 20 not in replicas or (racks[0] == 2 and replicas[3] == 20)


@pytest.mark.parametrize("seed", range(20))
def test_racks_where_everybody_is_fenced_get_followers(seed: int) -> None:
    """To spread over racks comes before avoiding fenced brokers."""
    brokers = [
        broker(10, "1"),
        broker(11, "1"),
        *(broker(each, f"{each // 10}", fenced=True) for each in (20, 21, 30, 31, 40)),
        broker(41, "4"),
    ]
    placed = StripedPlacer(brokers, SeededRandomSource(seed)).place(12, 4)
    assert all({replica // 10 for replica in replicas} == {1, 2, 3, 4} for replicas in placed)
    assert Counter(replicas[0] for replicas in placed) == {10: 4, 11: 4, 41: 4}
    assert 40 not in {each for row in placed for each in row}


@pytest.mark.parametrize("factor", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_one_ring_is_placed_as_any_racks_are(monkeypatch: pytest.MonkeyPatch, seed: int, factor: int) -> None:
    """Where nothing but the leader is to be chosen the rest is not gone into."""
    brokers = [*(broker(number) for number in range(5)), broker(9, fenced=True)]
    existing = counted((1, 2, 3), (0, 9, 1))
    placers = [StripedPlacer(brokers, SeededRandomSource(seed), {1: 7}) for _ in range(2)]
    short = [placers[0].place(count, factor, *existing) for count in (1, 23)]
    assert placers[0]._is_one_ring(factor)
    monkeypatch.setattr(StripedPlacer, "_is_one_ring", lambda *_: False)
    assert short == [placers[1].place(count, factor, *existing) for count in (1, 23)]
    assert placers[0]._racks[0].load == placers[1]._racks[0].load


def test_pairs_of_brokers_are_all_used() -> None:
    """Kafka's layout for evenness: 200 partitions of 2 replicas on 4 brokers."""
    placed = StripedPlacer([broker(each) for each in range(4)], SeededRandomSource()).place(200, 2)
    pairs = Counter(placed)
    assert len(pairs) == 12
    assert all(7 <= count <= 27 for count in pairs.values()), pairs
    assert Counter(each for replicas in placed for each in replicas) == dict.fromkeys(range(4), 100)


@pytest.mark.parametrize("sizes", [(3, 3, 3), (2, 2), (4, 2), (1, 3, 5), (6,), (1, 1, 7)])
@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_each_broker_leads_once_before_any_leads_twice(
    sizes: tuple[int, ...], factor: int, seed: int
) -> None:
    brokers = [
        broker(rack * 10 + each, f"r{rack}") for rack, size in enumerate(sizes) for each in range(size)
    ]
    placed = StripedPlacer(brokers, SeededRandomSource(seed)).place(3 * len(brokers), factor)
    for start in range(0, len(placed), len(brokers)):
        turn = placed[start : start + len(brokers)]
        assert len({replicas[0] for replicas in turn}) == len(brokers)
    assert all(len({each // 10 for each in row}) == min(factor, len(sizes)) for row in placed)


@pytest.mark.parametrize("factor", [2, 3])
def test_replicas_are_even_where_racks_are(factor: int) -> None:
    placed = StripedPlacer(racked(3, 3), SeededRandomSource()).place(90, factor)
    counts = Counter(each for row in placed for each in row)
    assert all(abs(count - 10 * factor) <= factor for count in counts.values()), counts


@pytest.mark.parametrize("seed", range(20))
def test_partitions_that_are_added_go_on_where_the_others_ended(seed: int) -> None:
    brokers = racked(2, 3)
    first = StripedPlacer(brokers, SeededRandomSource(seed)).place(4, 2)
    more = StripedPlacer(brokers, SeededRandomSource(seed + 100)).place(2, 2, *counted(*first))
    assert len({replicas[0] for replicas in (*first, *more)}) == 6


@pytest.mark.parametrize("led", [{0: 10, 1: 10, 2: 10, 3: 10, 4: 0}, {}])
def test_brokers_that_lead_fewer_are_preferred_but_not_alone(led: dict[int, int]) -> None:
    brokers, random_source = [broker(each) for each in range(5)], SeededRandomSource()
    firsts = Counter(StripedPlacer(brokers, random_source, led).place(1, 1)[0][0] for _ in range(1000))
    share = firsts[4] / 1000
    assert 0.3 < share < 0.42 if led else 0.15 < share < 0.25
    assert len(firsts) == 5


def test_cordoned_broker_gets_nothing() -> None:
    directories = (UUID(int=500), UUID(int=501))
    half = replace(broker(2), log_dirs=directories, cordoned_log_dirs=directories[:1])
    cordoned = replace(broker(3), log_dirs=directories, cordoned_log_dirs=directories)
    brokers = [broker(0), broker(1), half, cordoned]
    placed = StripedPlacer(brokers, SeededRandomSource()).place(30, 2)
    assert {each for row in placed for each in row} == {0, 1, 2}
    with pytest.raises(ApiError, match=r"only 3 broker.*cordoned"):
        StripedPlacer(brokers, SeededRandomSource()).place(1, 4)
    with pytest.raises(ApiError, match="fenced or have cordoned"):
        StripedPlacer([cordoned, broker(1, fenced=True)], SeededRandomSource()).place(1, 1)


@pytest.mark.parametrize(
    ("brokers", "factor", "words"),
    [
        ([], 1, "All brokers are currently fenced"),
        ([broker(0, fenced=True)], 1, "All brokers are currently fenced"),
        ([broker(0)], 2, "only 1 broker(s) are registered"),
        ([broker(0)], 0, "must be positive"),
        (racked(2, 1), 3, "only 2 broker(s) are registered"),
        ([broker(0, "r0", fenced=True), broker(1, "r1", fenced=True)], 1, "All brokers are currently fenced"),
    ],
)
def test_impossible(brokers: list[BrokerRegistration], factor: int, words: str) -> None:
    with pytest.raises(ApiError, match=f".*{words.split('(', maxsplit=1)[0]}") as caught:
        StripedPlacer(brokers, SeededRandomSource()).place(1, factor)
    assert caught.value.code is ErrorCode.invalid_replication_factor


@pytest.mark.parametrize("unfenced", [1, 2])
def test_many_partitions_on_few_unfenced_brokers_take_a_bounded_time(unfenced: int) -> None:
    """In calls of functions: an order of its own for every two partitions took three times as many."""
    placer = StripedPlacer(
        [broker(number, fenced=number >= unfenced) for number in range(12)], SeededRandomSource()
    )
    assert calls_of(lambda: placer.place(9_900, 3)) < 300_000


@pytest.mark.parametrize("unfenced", [1, 2])
def test_fenced_brokers_share_evenly_what_few_unfenced_ones_cannot_hold(unfenced: int) -> None:
    brokers = [broker(number, fenced=number >= unfenced) for number in range(12)]
    placed = StripedPlacer(brokers, SeededRandomSource()).place(1_200, 3)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {1_200 // unfenced}
    assert all(len(set(replicas)) == 3 for replicas in placed)
    held = Counter(each for replicas in placed for each in replicas if each >= unfenced)
    assert len(held) == 12 - unfenced
    assert max(held.values()) - min(held.values()) <= 40
