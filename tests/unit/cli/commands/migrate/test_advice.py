"""Which controller may be exchanged next, and why not."""

from dataclasses import replace

import pytest

from kquorum.cli.commands.migrate.advice import (
    MAX_LAG,
    MigrationView,
    Program,
    VoterView,
    reasons_against,
    risks_of,
)

LEVELS = {"metadata.version": (7, 30), "kraft.version": (0, 1)}


def voter(node_id: int, program: Program = Program.KAFKA, **changes: object) -> VoterView:
    seen = VoterView(
        node_id=node_id,
        address=f"controller-{node_id}:9093",
        program=program,
        is_alive=True,
        lag=0,
        supported={} if program is Program.NONE else LEVELS,
    )
    return replace(seen, **changes)  # type: ignore[arg-type]


def quorum(*voters: VoterView, leader_id: int = 1, metadata_version: int = 30) -> MigrationView:
    return MigrationView(
        leader_id=leader_id,
        leader_epoch=7,
        high_watermark=100,
        voters=tuple(replace(each, is_leader=each.node_id == leader_id) for each in voters),
        finalized={"metadata.version": metadata_version},
    )


THREE = quorum(voter(1), voter(2), voter(3))


def test_followers_go_first_and_the_leader_last() -> None:
    assert [each.node_id for each in THREE.order(Program.KQUORUM)] == [2, 3, 1]
    half = quorum(voter(1), voter(2, Program.KQUORUM), voter(3))
    assert [each.node_id for each in half.order(Program.KQUORUM)] == [3, 1]
    assert [each.node_id for each in half.order(Program.KAFKA)] == [2]


def test_a_controller_of_a_sound_quorum_may_go() -> None:
    for node_id in (1, 2, 3):
        assert reasons_against(THREE, Program.KQUORUM, node_id) == ()


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (voter(3, Program.NONE), "controller 3 (controller-3:9093) does not answer"),
        (voter(3, is_alive=False), "controller 3 does not follow the leader"),
        (voter(3, lag=MAX_LAG + 1), "controller 3 is 1,001 records behind"),
        (voter(3, lag=None), "controller 3 is an unknown number of records behind"),
    ],
)
def test_no_controller_goes_while_another_is_not_well(other: VoterView, reason: str) -> None:
    reasons = reasons_against(quorum(voter(1), voter(2), other), Program.KQUORUM, 2)
    assert reasons == (reason, "without it 1 of 3 voters are well, and 2 are needed to commit")
    # It may itself be exchanged: the others are a majority.
    assert reasons_against(quorum(voter(1), voter(2), other), Program.KQUORUM, 3) == ()


def test_of_five_one_may_be_away_but_all_others_are_to_be_well() -> None:
    five = quorum(voter(1), voter(2), voter(3), voter(4), voter(5, is_alive=False))
    assert reasons_against(five, Program.KQUORUM, 2) == ("controller 5 does not follow the leader",)


def test_a_controller_that_runs_the_program_already_and_one_that_is_no_voter() -> None:
    half = quorum(voter(1), voter(2, Program.KQUORUM), voter(3))
    assert reasons_against(half, Program.KQUORUM, 2) == ("controller 2 runs kquorum already",)
    assert reasons_against(half, Program.KQUORUM, 9) == (
        "node 9 is no voter of this quorum (voters: 1, 2, 3)",
    )


def test_levels_that_the_other_program_lacks() -> None:
    half = quorum(voter(1), voter(2, Program.KQUORUM), voter(3), metadata_version=33)
    [reason] = reasons_against(half, Program.KAFKA, 2)
    assert reason.startswith(
        "the cluster has finalized metadata.version 33, and kafka runs the levels 7 to 30"
    )


def test_levels_that_this_version_of_kquorum_lacks() -> None:
    newer = quorum(voter(1), voter(2), voter(3), metadata_version=99)
    [reason] = reasons_against(newer, Program.KQUORUM, 2)
    assert "metadata.version 99, and kquorum runs the levels" in reason


def test_what_an_operator_should_know_before() -> None:
    assert any("no other may fail" in each for each in risks_of(THREE, Program.KQUORUM))
    ours = quorum(voter(1, Program.KQUORUM))
    compared = "not compared with the cluster's: metadata.version 30"
    assert any(compared in each for each in risks_of(ours, Program.KAFKA))
    assert any("one voter" in each for each in risks_of(quorum(voter(1)), Program.KQUORUM))
    assert any("two voters" in each for each in risks_of(quorum(voter(1), voter(2)), Program.KQUORUM))
    assert not any("not compared" in each for each in risks_of(THREE, Program.KAFKA))


def test_the_only_voter_may_be_exchanged() -> None:
    assert reasons_against(quorum(voter(1)), Program.KQUORUM, 1) == ()


def test_of_two_voters_either_may_be_exchanged_while_nothing_is_committed() -> None:
    # A majority of two is both: there is no other way.
    assert reasons_against(quorum(voter(1), voter(2)), Program.KQUORUM, 2) == ()
