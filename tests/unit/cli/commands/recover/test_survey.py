"""Which folder a recovery goes on from, and what it says is lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from kquorum.cli.commands.recover.survey import BatchPlace, Plan, Survivor, make_plan, remedy_of
from kquorum.cli.failures import CliError


def batches(*places: tuple[int, int, int]) -> tuple[BatchPlace, ...]:
    """(base offset, next offset, epoch)."""
    return tuple(
        BatchPlace(base_offset=base, next_offset=following, epoch=epoch, crc=base * 7 + epoch)
        for base, following, epoch in places
    )


COMMON = ((0, 10, 1), (10, 20, 2))


def survivor(
    node_id: int,
    *more: tuple[int, int, int],
    voters: tuple[str, ...] = ("1", "2", "3"),
    committed: int = 10,
) -> Survivor:
    places = (*COMMON, *more)
    return Survivor(
        folder=Path(f"node-{node_id}"),
        node_id=node_id,
        cluster_id="cluster",
        directory_id=f"disk-{node_id}",
        epoch=places[-1][2],
        end_offset=places[-1][1],
        committed_offset=committed,
        state_epoch=places[-1][2],
        state_hash="abcd",
        metadata_version=25,
        voters=voters,
        batches=batches(*places),
    )


def test_one_of_three_may_have_lost_what_the_others_acknowledged() -> None:
    plan = make_plan([survivor(1)])
    assert (plan.has_majority, plan.loses_nothing, plan.lost_voters) == (False, False, ("2", "3"))
    assert plan.losses() == [
        "every change from offset 20 on that voters 2, 3 acknowledged is lost; how many there were cannot be known",
        "offsets 10 to 19 of this log are kept; of these it is not known here which were committed, and they count as "
        "committed from now on",
    ]


@pytest.mark.parametrize(
    ("voters", "left", "has_majority", "loses_nothing"),
    [
        (("1", "2"), (1,), False, True),
        (("1", "2", "3", "4"), (1, 2), False, True),
        (("1", "2", "3", "4", "5"), (1, 2), False, False),
        (("1", "2", "3"), (1, 2), True, True),
        (("1",), (1,), True, True),
    ],
)
def test_nothing_is_lost_if_every_majority_has_a_member_that_is_left(
    voters: tuple[str, ...], left: tuple[int, ...], has_majority: bool, loses_nothing: bool
) -> None:
    plan = make_plan([survivor(node_id, voters=voters) for node_id in left])
    assert (plan.has_majority, plan.loses_nothing) == (has_majority, loses_nothing)


def test_the_newest_epoch_counts_before_the_offset() -> None:
    five = tuple("12345")
    longer = survivor(1, (20, 90, 2), voters=five)
    newer = survivor(2, (20, 30, 3), voters=five)
    assert make_plan([longer, newer]).best is newer
    assert make_plan([survivor(2, voters=five), survivor(1, voters=five)]).best.node_id == 1


def test_dynamic_voters_are_known_by_their_directory() -> None:
    voters = ("1@disk-1", "2@disk-2", "3@disk-3")
    other_disk = replace(survivor(2, (20, 30, 3), voters=voters), directory_id="new-disk")
    plan = make_plan([survivor(1, voters=voters), other_disk])
    assert plan.best.node_id == 1
    assert [each.node_id for each in plan.left] == [1]
    assert plan.lost_voters == ("2@disk-2", "3@disk-3")


def test_a_damaged_log_and_a_lost_state_are_no_basis() -> None:
    damaged = replace(survivor(1), damage="a flipped bit")
    lost = replace(survivor(2), is_lost=True)
    with pytest.raises(CliError, match=r"node-1: a flipped bit; node-2: its state was lost"):
        make_plan([damaged, lost])
    assert make_plan([damaged, lost, survivor(3)]).best.node_id == 3


def test_a_broker_alone_is_no_basis() -> None:
    with pytest.raises(CliError, match="brokers do not vote"):
        make_plan([survivor(11)])


def test_two_clusters_or_two_copies_are_refused() -> None:
    with pytest.raises(CliError, match="several clusters"):
        make_plan([survivor(1), replace(survivor(2), cluster_id="another")])
    with pytest.raises(CliError, match="both of node 1"):
        make_plan([survivor(1), replace(survivor(1), folder=Path("copy"))])


def ahead_of(plan: Plan) -> list[tuple[int, int, int, bool]]:
    return [(each.survivor.node_id, each.offset, each.end_offset, each.is_broker) for each in plan.ahead]


def test_a_broker_ahead_of_what_is_left_is_told_with_the_remedy() -> None:
    plan = make_plan([survivor(1), survivor(11, (20, 25, 2), (25, 27, 2))])
    assert ahead_of(plan) == [(11, 20, 27, True)]
    text = remedy_of(plan.ahead[0])
    assert "has 7 records more, from offset 20 on" in text
    assert "remove its __cluster_metadata-0 before it starts" in text


def test_a_voter_with_another_end_is_ahead_too() -> None:
    plan = make_plan(
        [survivor(1, (20, 22, 3), voters=tuple("12345")), survivor(2, (20, 40, 2), voters=tuple("12345"))]
    )
    assert ahead_of(plan) == [(2, 20, 40, False)]
    assert "it is fenced" in remedy_of(plan.ahead[0])


def test_logs_that_begin_later_are_compared_where_they_overlap() -> None:
    best = replace(survivor(1), batches=batches((10, 20, 2)))
    behind = replace(survivor(11), end_offset=8, batches=batches((0, 8, 1)))
    assert ahead_of(make_plan([best, behind])) == []
    same = replace(survivor(12), batches=batches((0, 10, 1), (10, 20, 2)))
    assert ahead_of(make_plan([best, same])) == []
    only_snapshot = replace(survivor(13), batches=(), end_offset=20)
    assert ahead_of(make_plan([best, only_snapshot])) == []
    beyond = replace(survivor(14), batches=batches((20, 30, 2)), end_offset=30)
    assert ahead_of(make_plan([best, beyond])) == [(14, 20, 30, True)]


def test_the_highest_epoch_is_that_of_any_folder() -> None:
    assert make_plan([survivor(1), replace(survivor(11), state_epoch=9)]).highest_epoch == 9
