"""The voters and the operator that changes them: voters are added, removed, moved and given new disks (KIP-853)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from kquorum.raft.errors import NotLeaderError
from kquorum.raft.inputs import RequestReceived
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ChangeVotersResponse,
    RemoveRaftVoterRequest,
    Request,
    Response,
    TransferLeadershipRequest,
)
from kquorum.raft.voters import (
    BEFORE_THE_LOG,
    NO_VOTERS,
    SUPPORTED_KRAFT_VERSIONS,
    ZERO_DIRECTORY,
    KRaftVersionAt,
    ReplicaKey,
    Voter,
    VotersAt,
    VoterSet,
)
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.disk import SimulatedDisk
from tests.simulation.hosts import Host, WaitingReply

if TYPE_CHECKING:
    from tests.simulation.world import World

TRIES = 6
AGAIN = (ErrorCode.request_timed_out, ErrorCode.not_leader_or_follower, ErrorCode.broker_not_available)


def static_voters(hosts: list[Host]) -> VoterSet:
    """What `controller.quorum.voters` says: ids and addresses."""
    return VoterSet.of(*(Voter(ReplicaKey(host.node_id), (host.endpoint,)) for host in hosts))


def bootstrap_records(hosts: list[Host]) -> tuple[KRaftVersionAt | VotersAt, ...]:
    """What formatting with `--initial-controllers` leaves in the bootstrap checkpoint of each of them."""
    voters = (Voter(host.key, (host.endpoint,), SUPPORTED_KRAFT_VERSIONS) for host in hosts)
    return (KRaftVersionAt(BEFORE_THE_LOG, 1), VotersAt(BEFORE_THE_LOG, VoterSet.of(*voters)))


@dataclass(slots=True)
class Wish:
    """What the operator wants of the leader; `safe` looks at the world again before every try."""

    text: str
    request: Callable[[], Request | None]
    tries_left: int = TRIES


class Operator:
    """One change at a time, and none that would leave too few living voters for a majority: it looks first."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.wish: Wish | None = None
        self.later: list[Wish] = []
        self._next_directory = 1000
        self.former_disks: dict[ReplicaKey, list[SimulatedDisk]] = {}

    # What is there

    def sets_in_play(self) -> Iterator[VoterSet]:
        """Every voter set that is, or may come to be, in force somewhere."""
        for host in self.world.hosts.values():
            if host.node is not None:
                yield host.node.voters
            logged = [
                record.voters
                for record in (*host.disk.bootstrap, *host.disk.voter_sets)
                if isinstance(record, VotersAt)
            ]
            yield logged[-1] if logged else self.world.voters

    def has_majority(self, voters: VoterSet, *, spare: int = 0) -> bool:
        """Whether enough of these voters still have their disk and their address, `spare` more than needed."""
        living = sum(map(self._is_reachable, voters))
        return living - spare >= voters.majority

    def _is_reachable(self, voter: Voter) -> bool:
        host = self.world.hosts[voter.key.id]
        return voter.matches(host.key) and host.endpoint in voter.endpoints

    def _is_any_recovering(self) -> bool:
        hosts = self.world.hosts.values()
        return any(host.disk.has_lost_its_state or host.disk.damaged_until is not None for host in hosts)

    # Wishes

    def add(self, host: Host) -> None:
        def request() -> Request | None:
            if host.node is None or not host.can_be_voter or host.node.replica.is_voter:
                return None
            return AddRaftVoterRequest(
                cluster_id=self.world.cluster_id,
                timeout_ms=self.world.options.fetch_timeout_ms,
                voter=host.key,
                endpoints=(host.endpoint,),
            )

        self._wish(Wish(f"add node {host.node_id}", request))

    def remove(self, host: Host) -> None:
        """Remove the voter with this id, whichever disk it had."""

        def request() -> Request | None:
            leader = self.world.leader()
            voters = leader.node.voters if leader and leader.node else NO_VOTERS
            voter = voters.voters.get(host.node_id)
            if voter is None or not self._may_remove(host.node_id):
                return None
            return RemoveRaftVoterRequest(cluster_id=self.world.cluster_id, voter=voter.key)

        self._wish(Wish(f"remove node {host.node_id}", request))

    def _may_remove(self, node_id: int) -> bool:
        if self._is_any_recovering():
            return False
        for voters in self.sets_in_play():
            left = VoterSet.of(*(voter for voter in voters if voter.key.id != node_id))
            if len(voters) and (not len(left) or not self.has_majority(left)):
                return False
        return True

    def transfer(self, host: Host) -> None:
        self._wish(
            Wish(
                f"node {host.node_id} shall lead",
                lambda: TransferLeadershipRequest(target_id=host.node_id),
                1,
            )
        )

    def _wish(self, wish: Wish) -> None:
        if self.wish is not None:
            self.later.append(wish)
            return
        self.wish = wish
        self._try(wish)

    def _next(self) -> None:
        """That wish is over; on to what was wished meanwhile."""
        self.wish = None
        if self.later:
            self.world.at(1 + self.world.options.fetch_timeout_ms // 4, self._wish, self.later.pop(0))

    def _try(self, wish: Wish) -> None:
        if self.wish is not wish:
            return
        leader = self.world.leader()
        request = wish.request() if leader is not None else None
        if wish.tries_left == 0 or (leader is not None and request is None):
            self._next()
            return
        wish.tries_left -= 1
        if leader is None or request is None:
            self._again(wish)
            return
        self.world.note("operator: %s, asking node %d", wish.text, leader.node_id)
        leader.next_request_id += 1
        leader.waiting_replies[leader.next_request_id] = WaitingReply(None, 0, 0, 0, request, 0)
        tries_left = wish.tries_left
        self.world.at(4 * self.world.options.fetch_timeout_ms, self._no_answer, wish, tries_left)
        self.world.deliver(leader, leader.life, RequestReceived(leader.next_request_id, request))

    def _again(self, wish: Wish) -> None:
        self.world.at(1 + self.world.options.fetch_timeout_ms // 2, self._try, wish)

    def _no_answer(self, wish: Wish, tries_left: int) -> None:
        if self.wish is wish and wish.tries_left == tries_left:
            self._try(wish)

    def answered(self, host: Host, request: Request, response: Response) -> None:
        wish, error = self.wish, getattr(response, "error", ErrorCode.none)
        text = f"{type(request).__name__}: {error.name}"
        self.world.note("operator: node %d answers %s", host.node_id, text)
        if isinstance(response, ChangeVotersResponse) and error is ErrorCode.none:
            self.world.tally["membership changes"] += 1
        if wish is None:
            return
        if error in AGAIN and wish.tries_left > 0:
            self._again(wish)
        else:
            self._next()

    def upgrade(self, host: Host) -> None:
        """From static to dynamic voters."""
        node = host.node
        if node is None or host.paused_until_ms > self.world.now_ms:
            return
        try:
            refusal = node.upgrade_kraft_version(host.clock_ms(self.world.now_ms), node.leader_epoch, 1)
        except NotLeaderError:
            return
        self.world.note("node %d upgrades to kraft.version 1: %s", host.node_id, refusal or "done")
        if refusal is None:
            self.world.tally["upgrades"] += 1
        self.world.turn(host)

    # Disks and addresses

    def may_lose(self, host: Host) -> bool:
        """Whether this host may lose what is on its disk now. While the operator wants something, only a spare may: the
        leader may be about to add it for what it had, and must see that it has lost that."""
        is_spare = not any(voters.contains(host.key) for voters in self.sets_in_play())
        return (self.wish is None or is_spare) and self.survives_without(host)

    def replace_disk(self, host: Host, down_ms: int) -> None:
        """The machine comes back formatted again, with another directory id: another replica.

        Voters without directory ids cannot tell; they come back with the old one, and told of their loss.
        """
        if self._has_static_voters():
            self.lose_state(host, down_ms)
            return
        if self.wish is not None or not self.survives_without(host):
            return
        self._lose_disk(host, down_ms, "a new disk")
        # By its configuration it may be a static voter still, perhaps the only one: hence `format --replaced-disk`.
        host.disk.has_lost_its_state = len(self.world.voters) > 0
        host.directory_id = UUID(int=self._next_directory)
        self._next_directory += 1

    def _has_static_voters(self) -> bool:
        """Whether some voter set is the configuration's: without directory ids, and with addresses that stay."""
        return any(
            voter.key.directory_id == ZERO_DIRECTORY for voters in self.sets_in_play() for voter in voters
        )

    def lose_state(self, host: Host, down_ms: int) -> None:
        """The folder is formatted with the old directory id, but its contents are gone."""
        if self.may_lose(host):
            self._lose_disk(host, down_ms, "an emptied disk")
            host.disk.has_lost_its_state = True

    def survives_without(self, host: Host) -> bool:
        """Whether every voter set that this host is in has a majority left."""
        if self._is_any_recovering():
            return False
        sets = [voters for voters in self.sets_in_play() if voters.contains(host.key)]
        return all(self.has_majority(voters, spare=1) for voters in sets)

    def _lose_disk(self, host: Host, down_ms: int, what: str) -> None:
        if host.node is not None:
            self.world.crash(host)
        self.world.note("node %d will come back with %s", host.node_id, what)
        self.world.tally["lost disks"] += 1
        self.former_disks.setdefault(host.key, []).append(host.disk)
        host.disk = SimulatedDisk(host.disk.random_source, host.disk.segment_batches)
        self.world.at(down_ms, self.world.revive, host)

    def move(self, host: Host, down_ms: int) -> None:
        """The machine comes back at another address; with too many at once the nodes would not find each other."""
        if self.world.tally["moves"] >= 2 or self._has_static_voters():
            return
        if self.wish is not None or not self.survives_without(host):
            return
        self.world.tally["moves"] += 1
        if host.node is not None:
            self.world.crash(host)
        host.moves += 1
        self.world.note("node %d moves to port %d", host.node_id, host.endpoint.port)
        self.world.at(down_ms, self.world.revive, host)
