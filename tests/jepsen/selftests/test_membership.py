"""The clients of the workload membership: they keep enough voters, and know what an answer proves."""

from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kquorum.wire.uuids import uuid_to_text
from tests.jepsen.checkers.voters import ADD, READ, REMOVE
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.core.members import Members
from tests.jepsen.workloads.agreement import Agreement
from tests.jepsen.workloads.voter_book import VoterBook
from tests.jepsen.workloads.voter_changes import refusal, view_of

MEMBERS = Members.of(controllers=3, brokers=1, spares=1)
BROKER = 11
ALL = frozenset({1, 2, 3})


def directory(voter: int) -> str:
    return f"disk-{voter}"


def told(process: int, index: int, *voters: int, epoch: int = 1) -> list[Op]:
    ids = {str(voter): directory(voter) for voter in voters}
    others = {str(node): directory(node) for node in MEMBERS.quorum if node not in voters}
    value = {"leader": 1, "epoch": epoch, "voters": ids, "observers": others}
    invoked = Op(type=OpType.INVOKE, f=READ, process=process, index=index)
    return [invoked, Op(type=OpType.OK, f=READ, process=process, index=index + 1, value=value)]


def test_of_three_voters_none_is_removed_and_of_four_any_may_be() -> None:
    book, random_source = VoterBook(MEMBERS), Random(1)
    assert book.choose(random_source) is None
    for op in told(7, 0, *ALL):
        book.hear(op)
    chosen = {(each.f, each.voter) for _ in range(100) if (each := book.choose(random_source))}
    assert chosen == {(ADD, 4)}
    for op in told(7, 2, *ALL, 4):
        book.hear(op)
    chosen = {(each.f, each.voter) for _ in range(100) if (each := book.choose(random_source))}
    assert chosen == {(REMOVE, voter) for voter in (1, 2, 3, 4)}


@pytest.mark.parametrize("end", [None, OpType.OK, OpType.INFO])
def test_no_second_voter_is_removed_while_the_first_may_be_gone(end: OpType | None) -> None:
    book = VoterBook(MEMBERS)
    value = {"voter": 2, "directory": directory(2), "via": 1}
    for op in told(7, 0, *ALL, 4):
        book.hear(op)
    book.hear(Op(type=OpType.INVOKE, f=REMOVE, process=1, index=2, value=value))
    if end is not None:
        book.hear(Op(type=end, f=REMOVE, process=1, index=3, value=value))
    assert book.choose(Random(1)) is None
    book.hear(Op(type=OpType.INVOKE, f=REMOVE, process=2, index=4, value=value))
    book.hear(Op(type=OpType.FAIL, f=REMOVE, process=2, index=5, value=value))
    assert book.choose(Random(1)) is None


def test_a_refused_remove_leaves_the_voter() -> None:
    book = VoterBook(MEMBERS)
    value = {"voter": 2, "directory": directory(2), "via": 1}
    for op in told(7, 0, *ALL, 4):
        book.hear(op)
    book.hear(Op(type=OpType.INVOKE, f=REMOVE, process=1, index=2, value=value))
    book.hear(Op(type=OpType.FAIL, f=REMOVE, process=1, index=3, value=value))
    assert book.choose(Random(1)) is not None


def test_an_old_leader_is_refused() -> None:
    book = VoterBook(MEMBERS)
    for op in (*told(7, 0, *ALL, 4, epoch=5), *told(8, 2, *ALL, epoch=4)):
        book.hear(op)
    chosen = book.choose(Random(1))
    assert chosen is not None
    assert chosen.f == REMOVE


NOT_NOW = "another change of the voters is under way; one is made at a time"
LATE = "the change of the voters: it is not committed yet, though it may be later"


@pytest.mark.parametrize(
    ("code", "words", "via", "is_definite"),
    [
        (7, NOT_NOW, 1, True),
        (7, NOT_NOW, BROKER, False),
        (7, LATE, 1, False),
        (126, "node 4 is a voter already", 2, True),
        (126, "node 4 is a voter already", BROKER, False),
        (6, "node 1 does not lead the quorum", 1, True),
        (6, "the leader lost its epoch; look at the voters before you ask again", 1, False),
        (7, None, 1, False),
        (42, "voter 4 must come with the directory id", BROKER, True),
    ],
)
def test_only_what_surely_had_no_effect_is_a_failure(
    code: int, words: str | None, via: int, is_definite: bool
) -> None:
    assert refusal(code, "name", words, via=via).definite is is_definite


# What the controllers tell


def replica(node: int, disk: int, fetched_ms: int, end: int = 7) -> SimpleNamespace:
    return SimpleNamespace(
        replica_id=node,
        replica_directory_id=UUID(int=disk),
        last_fetch_timestamp=fetched_ms,
        log_end_offset=end,
    )


def partition(leader: int, error: int = 0) -> SimpleNamespace:
    return SimpleNamespace(
        error_code=error,
        leader_id=leader,
        leader_epoch=3,
        high_watermark=6,
        current_voters=[replica(1, 10, 500)],
        observers=[replica(4, 41, 900, end=9), replica(4, 40, 100, end=2)],
    )


def test_a_leader_tells_the_voters_and_of_a_node_with_two_disks_the_one_that_fetched_last() -> None:
    view = view_of(1, partition(leader=1))
    assert view["voters"] == {"1": uuid_to_text(UUID(int=10))}
    assert view["observers"] == {"4": uuid_to_text(UUID(int=41))}
    assert view["ends"] == {"1": 7, "4": 9}
    assert view["high_watermark"] == 6


@pytest.mark.parametrize(("node", "leader", "error"), [(2, 1, 6), (2, 1, 0), (1, 1, 6)])
def test_a_follower_names_its_leader_and_no_voters(node: int, leader: int, error: int) -> None:
    assert view_of(node, partition(leader, error)) == {"leader": 1, "epoch": 3}


def heard(agreement: Agreement, node: int, leader: int, epoch: int = 1, **told: Any) -> bool:
    value = {"leader": leader, "epoch": epoch, **told}
    return agreement.is_reached_with(Op(type=OpType.OK, f=READ, process=0, node=node, value=value))


def led(agreement: Agreement, mark: int, **ends: int) -> bool:
    """What node 1 tells as the leader; `ends` by n1, n2, n3."""
    by_node = {name.removeprefix("n"): end for name, end in ends.items()}
    return heard(agreement, 1, 1, voters={}, high_watermark=mark, ends=by_node)


def test_controllers_agree_once_all_name_one_leader_and_hold_what_it_had_committed() -> None:
    agreement = Agreement((1, 2, 3), READ)
    assert not led(agreement, 5, n1=5, n2=5, n3=2)
    assert not heard(agreement, 2, leader=1)
    assert not heard(agreement, 3, leader=-1, epoch=2)
    assert not heard(agreement, 3, leader=1), "node 3 lacks records"
    # It need not reach what was committed since.
    assert led(agreement, 9, n1=9, n2=9, n3=5)
    assert heard(agreement, 3, leader=1)


def test_an_agreement_that_was_reached_stays_so_when_another_leader_comes() -> None:
    agreement = Agreement((1, 2, 3), READ)
    led(agreement, 5, n1=5, n2=5, n3=5)
    heard(agreement, 2, leader=1)
    assert heard(agreement, 3, leader=1)
    assert heard(agreement, 2, leader=3, epoch=2), "node 1 is not asked any more"


def test_a_leader_of_another_epoch_is_no_agreement() -> None:
    agreement = Agreement((1, 2, 3), READ)
    led(agreement, 5, n1=5, n2=5, n3=5)
    heard(agreement, 2, leader=1)
    assert not heard(agreement, 3, leader=1, epoch=2)
    assert heard(agreement, 3, leader=1)
