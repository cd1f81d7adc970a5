"""Where new replicas go."""

from collections import Counter
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from metadata.controller.placement import StripedPlacer
from metadata.controller.requests import ApiError
from metadata.image.cluster import BrokerRegistration
from tests.unit.metadata.controller_world import SeededDice


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


@pytest.mark.parametrize("seed", range(20))
def test_replicas_are_on_different_racks_while_there_are_enough(seed: int) -> None:
    for replicas in StripedPlacer(racked(3, 2), SeededDice(seed)).place(60, 3):
        assert len({replica // 10 for replica in replicas}) == 3


@pytest.mark.parametrize("seed", range(20))
def test_replicas_are_never_on_one_broker_twice(seed: int) -> None:
    brokers = [*racked(2, 3), broker(99), broker(98, fenced=True)]
    for replicas in StripedPlacer(brokers, SeededDice(seed)).place(100, 8):
        assert len(set(replicas)) == 8


@pytest.mark.parametrize("seed", range(20))
def test_fenced_brokers_come_last_and_never_first(seed: int) -> None:
    brokers = [broker(0), broker(1), broker(2, fenced=True), broker(3, fenced=True)]
    for replicas in StripedPlacer(brokers, SeededDice(seed)).place(50, 3):
        assert set(replicas[:2]) == {0, 1}
        assert replicas[2] in (2, 3)


def test_leaders_and_replicas_are_spread_evenly() -> None:
    placed = StripedPlacer([broker(number) for number in range(5)], SeededDice()).place(500, 3)
    assert Counter(replicas[0] for replicas in placed) == dict.fromkeys(range(5), 100)
    assert all(abs(count - 300) < 30 for count in Counter(each for row in placed for each in row).values())


def test_neighbours_differ_once_every_broker_has_led() -> None:
    placed = StripedPlacer([broker(number) for number in range(6)], SeededDice()).place(600, 2)
    assert len({replicas for replicas in placed if replicas[0] == 0}) > 3


def test_broker_in_controlled_shutdown_gets_nothing() -> None:
    brokers = [broker(0), broker(1), broker(2, in_controlled_shutdown=True)]
    assert {each for row in StripedPlacer(brokers, SeededDice()).place(30, 2) for each in row} == {0, 1}


@pytest.mark.parametrize(
    ("brokers", "factor", "words"),
    [
        ([], 1, "All brokers are currently fenced"),
        ([broker(0, fenced=True)], 1, "All brokers are currently fenced"),
        ([broker(0)], 2, "only 1 broker(s) are registered"),
    ],
)
def test_impossible(brokers: list[BrokerRegistration], factor: int, words: str) -> None:
    with pytest.raises(ApiError, match=f".*{words.split('(', maxsplit=1)[0]}") as caught:
        StripedPlacer(brokers, SeededDice()).place(1, factor)
    assert caught.value.code is ErrorCode.invalid_replication_factor
