"""Safeguards of disks that run full or lose what they had promised to keep."""

from dataclasses import replace
from unittest.mock import patch

from kquorum.raft import full_disk, recovery
from kquorum.raft.follower import fetching
from kquorum.raft.leader import fetch_handler, leadership_transfer
from kquorum.raft.messages import FetchRequest, FetchResponse
from kquorum.raft.recovery import ANONYMOUS
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Leader, ReplicaProgress
from kquorum.raft.voters import ReplicaKey
from tests.simulation.mutants.registry import Patch, everywhere, getter_of, mutant
from tests.simulation.options import Options


def _with_damage(options: Options) -> bool:
    return "damaged disk" in options.faults and options.voters >= 3


def _with_full_disks(options: Options) -> bool:
    return "full disk" in options.faults


@mutant(schedule="damaged_voter_withholds_its_vote", worlds=_with_damage)
def damage_is_ignored() -> Patch:
    """A voter that lost part of its log neither votes as before nor stands until it has it back."""
    init = Replica.__init__

    def confident(self: Replica, *arguments: object) -> None:
        init(self, *arguments)  # type: ignore[arg-type]
        self.damaged_epoch = None

    return patch.object(Replica, "__init__", confident)


@mutant(schedule="damaged_voter_withholds_its_vote", worlds=_with_damage)
def damaged_replica_votes() -> Patch:
    """A voter that lost part of its log does not judge by what is left of it who may lead."""

    def always(replica: Replica, last_offset_epoch: int) -> bool:
        return False

    return everywhere(recovery.cannot_judge, always)


@mutant(schedule="damaged_voter_is_patient", worlds=_with_damage)
def damaged_replica_stands() -> Patch:
    """A voter that lost part of its log does not stand for election."""
    may_stand = getter_of(Replica, "may_stand")

    def bold(self: Replica) -> bool:
        damaged_epoch, self.damaged_epoch = self.damaged_epoch, None
        answer = may_stand(self)
        self.damaged_epoch = damaged_epoch
        return bool(answer)

    return patch.object(Replica, "may_stand", property(bold))


@mutant(schedule="damaged_log_is_whole_again", worlds=_with_damage)
def damaged_log_is_whole_too_soon() -> Patch:
    """A damaged log is whole when all that was acknowledged is back, not when the first of it is."""

    def easy(replica: Replica, epoch: int) -> bool:
        return replica.lost_until is not None

    return everywhere(recovery._reaches_the_end, easy)


@mutant(schedule="damaged_voter_and_a_late_acknowledgement", worlds=_with_damage)
def damaged_log_is_whole_at_the_high_watermark() -> Patch:
    """A voter may have acknowledged more than is committed, and it is committed with its help later."""
    hear = recovery.hear_end

    def modest(replica: Replica, response: FetchResponse) -> None:
        hear(replica, response)
        if response.high_watermark >= 0:
            replica.lost_until = response.high_watermark

    return everywhere(hear, modest)


@mutant(schedule="damaged_voter_under_load", worlds=_with_damage)
def damaged_log_waits_for_an_empty_answer() -> Patch:
    """A damaged log that has all that its leader had is whole, though there is always more."""

    def deaf(replica: Replica, response: FetchResponse) -> None:
        replica.lost_until = recovery.FARTHEST_OFFSET

    return everywhere(recovery.hear_end, deaf)


@mutant(schedule="damaged_voter_and_a_repeated_fetch", worlds=_with_damage)
def displaced_fetch_is_answered_with_nothing() -> Patch:
    """Only a Fetch from the end of the log is answered without records."""

    def curt(replica: Replica, leader: Leader, key: ReplicaKey) -> None:
        earlier = leader.parked.pop(key)
        if earlier is not None:
            replica.respond(earlier.request_id, fetch_handler._fetch_response(replica))

    return everywhere(fetch_handler.answer_parked_fetch, curt)


@mutant(schedule="full_disk_of_the_leader", worlds=_with_full_disks)
def leader_without_space_leads_on() -> Patch:
    """A leader that cannot write hands over."""

    def stay(replica: Replica, leader: Leader, now_ms: int) -> None:
        return None

    return everywhere(leadership_transfer.begin_flight, stay)


@mutant(schedule="full_disk_of_a_follower", worlds=_with_full_disks)
def follower_without_space_writes() -> Patch:
    """A replica without space takes no records."""
    handle = fetching.handle_fetch_response

    def greedy(replica: Replica, now_ms: int, source_id: int, response: FetchResponse) -> None:
        writes_are_paused, replica.writes_are_paused = replica.writes_are_paused, False
        handle(replica, now_ms, source_id, response)
        replica.writes_are_paused = writes_are_paused

    return everywhere(handle, greedy)


@mutant(schedule="full_disk_and_no_leader", worlds=_with_full_disks)
def stands_without_space() -> Patch:
    """A replica without space does not stand: it could not write down that it leads."""
    may_stand = getter_of(Replica, "may_stand")

    def bold(self: Replica) -> bool:
        writes_are_paused, self.writes_are_paused = self.writes_are_paused, False
        answer = may_stand(self)
        self.writes_are_paused = writes_are_paused
        return bool(answer)

    return patch.object(Replica, "may_stand", property(bold))


@mutant(schedule="full_disk_of_a_follower", worlds=_with_full_disks)
def pause_never_ends() -> Patch:
    """A replica that has space again takes records again."""
    handle = full_disk.handle_writes_paused

    def gloomy(replica: Replica, now_ms: int, *, is_paused: bool) -> None:
        if is_paused:
            handle(replica, now_ms, is_paused=True)

    return everywhere(full_disk.handle_writes_paused, gloomy)


def _with_changes_and_damage(options: Options) -> bool:
    return "add voter" in options.faults and "damaged disk" in options.faults


@mutant(schedule="damaged_spare_is_not_added", worlds=_with_changes_and_damage)
def loss_is_not_noted() -> Patch:
    """A replica that showed that it lost part of its log is caught up only when it reached the end once more."""

    def trusting(self: ReplicaProgress) -> None:
        pass

    return patch.object(ReplicaProgress, "forget_catching_up", trusting)


@mutant(schedule="wiped_spare_is_not_added", worlds=_with_changes_and_damage)
def loss_is_reported_without_its_voter() -> Patch:
    """A replica that lost records or votes says so to its leader in its own name."""
    ask_for_end = recovery.ask_for_end

    def shy(replica: Replica, request: FetchRequest) -> FetchRequest:
        return replace(ask_for_end(replica, request), replica=ANONYMOUS)

    return everywhere(recovery.ask_for_end, shy)
