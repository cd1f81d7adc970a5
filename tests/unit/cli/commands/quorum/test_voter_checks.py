"""The pre-flight of changing the voters: what it finds, and what it says to do."""

from collections.abc import Sequence
from dataclasses import replace

from kquorum.cli.clients.quorum_client import QuorumStatus, ReplicaLag
from kquorum.cli.commands.quorum.voter_checks import (
    Candidate,
    ObservedQuorum,
    PreflightCheck,
    add_voter_checks,
    remove_voter_checks,
    resolve,
    transfer_checks,
    upgrade_checks,
)
from kquorum.cli.commands.quorum.voters import LOST_FOR_S, LostMajority
from kquorum.node.config.addresses import HostPort

NOW_MS = 1_700_000_000_000
NEW = Candidate(node_id=4, directory_id="new-disk", endpoint=HostPort("d", 9093), is_controller=True)


def replica(
    node_id: int, directory: str | None = None, *, fetched_ms: int | None = NOW_MS, lag: int = 0
) -> ReplicaLag:
    return ReplicaLag(
        replica_id=node_id,
        directory_id=directory or f"disk-{node_id}",
        log_end_offset=1000 - lag,
        lag=lag,
        last_fetch_timestamp_ms=fetched_ms,
        last_caught_up_timestamp_ms=fetched_ms,
    )


def view(
    voters: Sequence[ReplicaLag] = (replica(1), replica(2), replica(3)),
    observers: Sequence[ReplicaLag] = (replica(4, "new-disk"),),
    *,
    silent: Sequence[ReplicaLag] = (),
    kraft_version: int = 1,
    metadata_version: int = 25,
    high_watermark: int = 1000,
) -> ObservedQuorum:
    """Node 1 leads; the `silent` had fetched before the looking began, and not since."""
    status = QuorumStatus(
        leader_id=1,
        leader_epoch=7,
        high_watermark=high_watermark,
        voters=tuple(voters),
        observers=tuple(observers),
    )
    levels = {"metadata.version": metadata_version} | ({"kraft.version": 1} if kraft_version else {})
    before = {(item.replica_id, item.directory_id): item.last_fetch_timestamp_ms for item in silent}
    return ObservedQuorum(status=status, levels=levels, now_ms=NOW_MS, fetched_before=before)


def failed(checks: Sequence[PreflightCheck]) -> dict[str, PreflightCheck]:
    found = {check.name: check for check in checks if not check.passed}
    assert all(check.remedy for check in found.values())
    return found


def test_a_caught_up_controller_can_be_added() -> None:
    checks = add_voter_checks(view(), NEW)
    assert failed(checks) == {}
    assert "afterwards 4 voters, majority 3: 1 may fail; alive now: 1, 2, 3, 4" in [
        item.detail for item in checks
    ]


def test_a_static_quorum_must_be_upgraded_first() -> None:
    for checks in (
        add_voter_checks(view(kraft_version=0), NEW),
        remove_voter_checks(view(kraft_version=0), 2),
    ):
        assert "kquorum quorum upgrade" in failed(checks)["dynamic quorum"].remedy


def test_a_node_that_does_not_fetch_cannot_be_added() -> None:
    found = failed(add_voter_checks(view(observers=()), NEW))
    assert set(found) == {"observed"}
    assert "the observers are: none" in found["observed"].detail
    assert found["observed"].may_pass_later


def test_the_old_disk_of_a_node_is_not_taken_for_a_live_one() -> None:
    """It fetched a moment ago, as far as the leader remembers; but it does not fetch any more."""
    old = replica(4, "old-disk", fetched_ms=NOW_MS - 800)
    candidate = Candidate(node_id=4, directory_id="old-disk", endpoint=NEW.endpoint, is_controller=True)
    assert "alive" in failed(add_voter_checks(view(observers=[old], silent=[old]), candidate))


def test_of_two_disks_the_one_that_fetches_is_meant() -> None:
    old, new = replica(4, "old-disk", fetched_ms=NOW_MS - 800), replica(4, "new-disk")
    seen = view(observers=[old, new], silent=[old])
    found = resolve(
        seen, 4, directory_id=None, endpoint=None, configured=HostPort("d", 1), is_configured_controller=True
    )
    assert found.directory_id == "new-disk"
    assert failed(add_voter_checks(seen, found)) == {}


def test_an_insisted_directory_id_must_be_the_one_that_fetches() -> None:
    typed = Candidate(node_id=4, directory_id="typo", endpoint=NEW.endpoint, is_controller=True)
    assert (
        "fetches from directory new-disk, not typo"
        in failed(add_voter_checks(view(), typed))["observed"].detail
    )


def test_a_node_far_behind_has_to_catch_up_first() -> None:
    found = failed(add_voter_checks(view(observers=[replica(4, "new-disk", lag=5000)]), NEW))
    assert set(found) == {"caught up"}
    assert "5,000 records" in found["caught up"].detail


def test_a_voter_is_not_added_twice_and_a_new_disk_needs_the_old_one_removed() -> None:
    voter = Candidate(node_id=2, directory_id="new", endpoint=NEW.endpoint, is_controller=True)
    found = failed(add_voter_checks(view(observers=[replica(2, "new")]), voter))
    assert "remove-voter 2" in found["not a voter yet"].remedy
    assert "voter 2 has directory disk-2; directory new only observes" in found["not a voter yet"].detail


def test_the_disk_that_a_voter_had_before_is_not_taken_for_its_new_one() -> None:
    """Of a voter whose node runs with the new disk, the leader remembers the old one as an observer for minutes. To
    remove the voter then would remove the good one."""
    old, new = replica(2, "old-disk", fetched_ms=NOW_MS - 9000), replica(2, "new-disk")
    voter = Candidate(node_id=2, directory_id="old-disk", endpoint=NEW.endpoint, is_controller=True)
    seen = view([replica(1), new, replica(3)], [old], silent=[old, replica(3)])
    found = failed(add_voter_checks(seen, voter))["not a voter yet"]
    assert found.is_wished
    assert found.detail == "node 2 is a voter already (directory new-disk)"
    led = view([replica(1, fetched_ms=None), replica(2)], [replica(1, "old-disk")], silent=[replica(3)])
    leader = Candidate(node_id=1, directory_id=None, endpoint=NEW.endpoint, is_controller=True)
    assert failed(add_voter_checks(led, leader))["not a voter yet"].is_wished


def test_the_new_disk_of_a_voter_is_not_counted_as_the_living_voter() -> None:
    old, new = replica(3), replica(3, "new-disk")
    candidate = Candidate(node_id=3, directory_id="new-disk", endpoint=NEW.endpoint, is_controller=True)
    seen = view([replica(1), replica(2), old], [new], silent=[old])
    details = {check.name: check.detail for check in add_voter_checks(seen, candidate)}
    assert details["majority"].endswith("alive now: 1, 2")


def test_adding_a_voter_that_is_a_member_already_succeeds() -> None:
    voter = Candidate(node_id=2, directory_id=None, endpoint=NEW.endpoint, is_controller=True)
    looked_on = view(silent=[replica(3)])
    assert [check.is_wished for check in add_voter_checks(looked_on, voter)].count(True) == 1
    assert [check.is_wished for check in add_voter_checks(looked_on, NEW)].count(True) == 0
    dead = view(silent=[replica(2)])
    assert [check.is_wished for check in add_voter_checks(dead, voter)].count(True) == 0


def test_a_removal_says_which_disk_goes() -> None:
    assert (
        "node 3 votes with directory disk-3" in [check.detail for check in remove_voter_checks(view(), 3)][2]
    )


def test_a_removal_from_a_static_quorum_names_no_disk() -> None:
    lag = replace(replica(3), directory_id=None)
    seen = view()
    seen = replace(seen, status=replace(seen.status, voters=(*seen.status.voters[:-1], lag)))
    assert seen.status.voters[-1].replica_id == 3
    details = [check.detail for check in remove_voter_checks(seen, 3)]
    assert "node 3 votes; the voters are 1, 2, 3" in details


def test_a_broker_and_an_unknown_node_are_distinguished() -> None:
    for is_controller, words in ((False, "is a broker"), (None, "no controller 4 is registered")):
        candidate = Candidate(node_id=4, directory_id="new-disk", endpoint=None, is_controller=is_controller)
        found = failed(add_voter_checks(view(), candidate))
        assert words in found["a controller"].detail
        assert "--endpoint" in found["endpoint"].remedy


def test_an_addition_that_could_not_be_committed_is_refused() -> None:
    """Of 1, 2, 3 only 1 and 2 run: with 4, which is alive, that is a majority of four; without it, it is not."""
    voters = [replica(1), replica(2), replica(3)]
    assert failed(add_voter_checks(view(voters, silent=[voters[2]]), NEW)) == {}
    gone = failed(add_voter_checks(view(voters, silent=voters[1:]), NEW))
    assert "alive now: 1, 4" in gone["majority"].detail


def test_a_dead_voter_can_be_removed_and_a_live_one_unless_the_rest_would_stand_still() -> None:
    voters = [replica(1), replica(2), replica(3)]
    assert failed(remove_voter_checks(view(voters, silent=[voters[2]]), 3)) == {}
    stuck = failed(remove_voter_checks(view(voters, silent=[voters[2]]), 2))
    assert set(stuck) == {"majority"}
    assert "afterwards 2 voters, majority 2: none may fail; alive now: 1" in stuck["majority"].detail


def test_the_last_voter_and_an_unknown_node_cannot_be_removed() -> None:
    assert set(failed(remove_voter_checks(view([replica(1)]), 1))) == {"not the last"}
    assert set(failed(remove_voter_checks(view(), 9))) == {"a voter"}


def test_the_leader_may_be_removed_and_it_is_said_what_happens() -> None:
    checks = remove_voter_checks(view(), 1)
    assert failed(checks) == {}
    assert "node 1 leads" in checks[-1].detail


def test_a_leader_of_two_hands_over_before_it_goes() -> None:
    found = failed(remove_voter_checks(view([replica(1), replica(2)]), 1))
    assert set(found) == {"leader"}
    assert "transfer-leadership 2" in found["leader"].remedy
    assert failed(remove_voter_checks(view([replica(1), replica(2)]), 2)) == {}


def test_a_leader_without_a_commit_is_waited_for() -> None:
    found = failed(add_voter_checks(view(high_watermark=-1), NEW))
    assert found["leader commits"].may_pass_later


def test_leadership_goes_to_another_caught_up_voter_only() -> None:
    assert failed(transfer_checks(view(), 2)) == {}
    assert set(failed(transfer_checks(view(), 1))) == {"not the leader"}
    assert set(failed(transfer_checks(view(), 4))) == {"a voter"}
    late = replica(2, lag=4000)
    assert set(failed(transfer_checks(view([replica(1), late], silent=[late]), 2))) == {"alive", "caught up"}


def test_an_upgrade_needs_every_voter_and_a_metadata_version() -> None:
    assert failed(upgrade_checks(view(kraft_version=0))) == {}
    assert set(failed(upgrade_checks(view()))) == {"static"}
    voters = [replica(1), replica(2)]
    found = failed(upgrade_checks(view(voters, kraft_version=0, metadata_version=20, silent=voters[1:])))
    assert set(found) == {"metadata.version", "all voters run"}
    assert found["all voters run"].detail == "silent: 2"


def test_what_was_typed_wins_over_the_config_and_that_over_the_registration() -> None:
    seen = ObservedQuorum(status=view().status, registered={4: HostPort("registered", 1)}, now_ms=NOW_MS)
    typed, configured = HostPort("typed", 1), HostPort("configured", 1)
    for given, expected in (
        ((typed, configured), "typed"),
        ((None, configured), "configured"),
        ((None, None), "registered"),
    ):
        found = resolve(
            seen, 4, directory_id=None, endpoint=given[0], configured=given[1], is_configured_controller=None
        )
        assert found.endpoint is not None
        assert found.endpoint.host == expected
        assert found.is_controller is True


def test_a_majority_is_lost_when_it_is_missing_in_two_rounds_that_far_apart() -> None:
    lost = LostMajority()
    assert not lost.lasts(10.0, is_lost=True)
    assert not lost.lasts(10.1, is_lost=True)
    assert not lost.lasts(10.2, is_lost=False)
    assert not lost.lasts(10.0 + LOST_FOR_S, is_lost=True)
    assert not lost.lasts(10.0 + 2 * LOST_FOR_S - 0.1, is_lost=True)
    assert lost.lasts(10.0 + 2 * LOST_FOR_S, is_lost=True)
