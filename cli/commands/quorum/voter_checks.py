"""The pre-flight of a change of the voters: what the command knows of the quorum, and each point that speaks against
the change, with its remedy.

The leader checks again and has the last word. The checks here cover what an operator can act on, also where the
leader would accept the change and the quorum would stand still afterwards.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, check_error
from kquorum.cli.clients.quorum_client import PATIENCE_MS, QuorumStatus, ReplicaLag, describe_quorum
from kquorum.cli.failures import CliError
from kquorum.metadata.image.metadata_version import DYNAMIC_QUORUM, KRAFT_VERSION, METADATA_VERSION
from kquorum.node.config.addresses import HostPort
from kquorum.wire.messages.api_versions import ApiVersionsRequest
from kquorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kquorum.wire.wording import counted

_CONTROLLERS = 2
# How long it takes to see which replicas are alive: a follower's Fetch waits at the leader for 0.5 s at most.
LOOK_ON_S = 1.5
ReplicaId = tuple[int, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedQuorum:
    """`registered` are the controllers that registered themselves, with their listener; empty where no controller could
    be asked for them. `fetched_before` is when each replica had fetched last when the looking began."""

    status: QuorumStatus
    levels: Mapping[str, int] = field(default_factory=dict)
    registered: Mapping[int, HostPort] = field(default_factory=dict)
    now_ms: int
    fetched_before: Mapping[ReplicaId, int | None] = field(default_factory=dict)

    @property
    def kraft_version(self) -> int:
        return self.levels.get(KRAFT_VERSION, 0)

    @property
    def has_looked_on(self) -> bool:
        """Whether there was a look before this one, so that `is_alive` can tell."""
        return bool(self.fetched_before)

    def is_alive(self, replica: ReplicaLag) -> bool:
        """Whether it fetched while we looked on. How long ago it did would not do: a node that died a moment ago, and
        the disk that it had before, fetched recently too."""
        if replica.replica_id == self.status.leader_id:
            return True
        fetched_ms = replica.last_fetch_timestamp_ms
        before_ms = self.fetched_before.get(replica_id_of(replica), -1) or -1
        return fetched_ms is not None and fetched_ms > before_ms

    def observer(self, node_id: int) -> ReplicaLag | None:
        """The observer of this id that fetched last: a node whose disk was replaced may be there with the old one."""
        found = [replica for replica in self.status.observers if replica.replica_id == node_id]
        return max(found, key=lambda replica: replica.last_fetch_timestamp_ms or 0, default=None)


def replica_id_of(replica: ReplicaLag) -> ReplicaId:
    return replica.replica_id, replica.directory_id


async def look(client: ClusterClient, first: ObservedQuorum | None = None) -> ObservedQuorum:
    """`first` is what was seen when the looking began. Raises CliError when no leader can be reached."""
    status = await describe_quorum(client)
    asked = ApiVersionsRequest(client_software_name="kquorum", client_software_version="1")
    versions = await client.ask(PendingRequest(request=asked, patience_ms=PATIENCE_MS))
    levels = {feature.name: feature.max_version_level for feature in versions.finalized_features}
    registered = await _registered(client, status)
    before = () if first is None else (*first.status.voters, *first.status.observers)
    return ObservedQuorum(
        status=status,
        levels=levels,
        registered=registered,
        now_ms=time.time_ns() // 1_000_000,
        fetched_before={replica_id_of(replica): replica.last_fetch_timestamp_ms for replica in before},
    )


async def _registered(client: ClusterClient, status: QuorumStatus) -> dict[int, HostPort]:
    """As the controllers tell: those asked anyway, else the leader, where it can be reached from here."""
    leader = status.place_of(status.leader_id)
    try:
        response = await _ask_for_controllers(client)
    except CliError:
        if leader is None or leader in client.addresses:
            return {}
        try:
            async with ClusterClient([leader], client.remaining_ms) as direct:
                response = await _ask_for_controllers(direct)
        except CliError:
            return {}
    return {item.broker_id: HostPort(item.host, item.port) for item in response.brokers}


async def _ask_for_controllers(client: ClusterClient) -> DescribeClusterResponse:
    asked = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
    response = await client.ask(PendingRequest(request=asked, patience_ms=PATIENCE_MS))
    check_error(int(response.error_code), response.error_message, "the controllers cannot be listed")
    return response


# A replica this far behind catches up within a moment: a batch of a busy leader or two.
LAG_LIMIT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightCheck:
    """One point. `may_pass_later` says that waiting is the remedy, or part of it; `is_wished` that it failed because
    what was asked for is so already."""

    name: str
    passed: bool
    detail: str
    remedy: str = ""
    may_pass_later: bool = False
    is_wished: bool = False

    def as_json(self) -> dict[str, object]:
        """The remedy only where one is needed."""
        return asdict(self) | {"remedy": None if self.passed else self.remedy}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The replica that is to become a voter; `endpoint` is None where its listener is not known. `is_controller` is
    None where neither config nor registration says."""

    node_id: int
    directory_id: str | None
    endpoint: HostPort | None
    is_controller: bool | None


def dynamic(view: ObservedQuorum) -> PreflightCheck:
    return PreflightCheck(
        name="dynamic quorum",
        passed=view.kraft_version >= 1,
        detail=f"kraft.version is {view.kraft_version}",
        remedy="the voters are those of the config (a static quorum): run `kquorum quorum upgrade` first",
    )


def leader_commits(view: ObservedQuorum) -> PreflightCheck:
    status = view.status
    return PreflightCheck(
        name="leader commits",
        passed=status.high_watermark >= 0,
        detail=f"node {status.leader_id} leads epoch {status.leader_epoch}, high watermark {status.high_watermark}",
        remedy="the leader has not committed anything in its epoch: wait, or start more voters",
        may_pass_later=True,
    )


def is_a_controller(candidate: Candidate) -> PreflightCheck:
    details = {
        True: f"node {candidate.node_id} is a controller",
        False: f"node {candidate.node_id} is a broker",
        None: f"no controller {candidate.node_id} is registered",
    }
    return PreflightCheck(
        name="a controller",
        passed=candidate.is_controller is True,
        detail=details[candidate.is_controller],
        remedy="only a controller can vote: start it with process.roles=controller"
        if candidate.is_controller is False
        else "start it, or name its listener with --endpoint",
        may_pass_later=candidate.is_controller is None,
    )


def observed(view: ObservedQuorum, candidate: Candidate, observer: ReplicaLag | None) -> PreflightCheck:
    node_id = candidate.node_id
    seen = ", ".join(str(replica.replica_id) for replica in view.status.observers) or "none"
    if observer is None:
        return PreflightCheck(
            name="observed",
            passed=False,
            detail=f"node {node_id} does not fetch from the leader; the observers are: {seen}",
            remedy=f"start node {node_id}, formatted with --no-initial-controllers for this cluster",
            may_pass_later=True,
        )
    wanted = candidate.directory_id
    if wanted is not None and wanted != observer.directory_id:
        detail = f"node {node_id} fetches from directory {observer.directory_id}, not {wanted}"
        return PreflightCheck(name="observed", passed=False, detail=detail, remedy="leave --directory-id out")
    has_id = observer.directory_id is not None
    return PreflightCheck(
        name="observed",
        passed=has_id,
        detail=f"its directory id is {observer.directory_id}" if has_id else "it tells no directory id",
        remedy="it runs a version without directory ids: upgrade it",
    )


def caught_up(view: ObservedQuorum, node_id: int, replica: ReplicaLag | None) -> list[PreflightCheck]:
    if replica is None:
        return []
    fetched_ms = replica.last_fetch_timestamp_ms
    ago = "never" if fetched_ms is None else f"{max(view.now_ms - fetched_ms, 0) / 1000:.1f} s ago"
    lag = "unknown" if replica.lag is None else counted(replica.lag, "record")
    return [
        PreflightCheck(
            name="alive",
            passed=view.is_alive(replica),
            detail=f"its last fetch was {ago}",
            remedy=f"start node {node_id}, or look into its log",
            may_pass_later=True,
        ),
        PreflightCheck(
            name="caught up",
            passed=replica.lag is not None and replica.lag <= LAG_LIMIT,
            detail=f"its lag is {lag}",
            remedy=f"wait until it is below {LAG_LIMIT:,}: `kquorum quorum status` shows it",
            may_pass_later=True,
        ),
    ]


def has_endpoint(candidate: Candidate) -> PreflightCheck:
    found = candidate.endpoint
    return PreflightCheck(
        name="endpoint",
        passed=found is not None,
        detail="it is not known where its listener is" if found is None else f"its listener is {found}",
        remedy="name it with --endpoint host:port, or with --config FILE where the node is in",
        may_pass_later=True,
    )


def majority(voters: Iterable[int], alive: Iterable[int]) -> PreflightCheck:
    """Of the voters as they would be: the change itself needs a majority of them to be committed."""
    count, running = len(set(voters)), sorted(set(alive))
    spare = len(running) - (count // 2 + 1)
    said = ", ".join(str(node_id) for node_id in running) or "none"
    return PreflightCheck(
        name="majority",
        passed=spare >= 0,
        detail=f"afterwards {size_in_words(count)}; alive now: {said}",
        remedy="too few would be alive to commit the change, or anything after it: start voters first",
        may_pass_later=True,
    )


def size_in_words(voters: int) -> str:
    """`3 voters, majority 2: 1 may fail`."""
    needed = voters // 2 + 1
    may_fail = voters - needed
    return f"{counted(voters, 'voter')}, majority {needed}: {may_fail or 'none'} may fail"


def resolve(
    view: ObservedQuorum,
    node_id: int,
    *,
    directory_id: str | None,
    endpoint: HostPort | None,
    configured: HostPort | None,
    is_configured_controller: bool | None,
) -> Candidate:
    """The replica with this id: the directory id comes from its fetches, the endpoint from what was typed, the config,
    or its own registration, in this order: the user need not type what the cluster knows."""
    observer = view.observer(node_id)
    known = view.registered.get(node_id)
    is_controller = is_configured_controller
    # Only controllers register as such; and a typed endpoint is taken as the word of the operator.
    if is_controller is None and (known is not None or endpoint is not None):
        is_controller = True
    return Candidate(
        node_id=node_id,
        directory_id=directory_id or (None if observer is None else observer.directory_id),
        endpoint=endpoint or configured or known,
        is_controller=is_controller,
    )


def add_voter_checks(view: ObservedQuorum, candidate: Candidate) -> list[PreflightCheck]:
    node_id, status = candidate.node_id, view.status
    voter = status.voter(node_id)
    observer = view.observer(node_id)
    if voter is not None and observer is not None and _ran_before(view, observer, voter):
        observer = None
    ids = [replica.replica_id for replica in status.voters]
    checks = [dynamic(view), leader_commits(view)]
    checks.append(_not_a_voter_yet(view, node_id, voter, observer))
    checks.append(is_a_controller(candidate))
    if voter is None:
        checks += [observed(view, candidate, observer), *caught_up(view, node_id, observer)]
    checks.append(has_endpoint(candidate))
    # KIP-853: AddRaftVoter takes effect when it is appended, and is committed by a majority of the larger set. With too
    # few alive, the leader could commit nothing any more.
    alive = [replica.replica_id for replica in status.voters if view.is_alive(replica)]
    # An observer with the id of a voter is that node's new disk: it is not the voter, and it would not join.
    joins = voter is None and observer is not None and view.is_alive(observer)
    checks.append(majority([*ids, node_id], [*alive, node_id] if joins else alive))
    return checks


def _ran_before(view: ObservedQuorum, observer: ReplicaLag, voter: ReplicaLag) -> bool:
    """Whether the observer is the disk that the voter's node had before: the leader remembers it for minutes."""
    if voter.replica_id == view.status.leader_id:
        return True
    return (observer.last_fetch_timestamp_ms or 0) < (voter.last_fetch_timestamp_ms or 0)


def _not_a_voter_yet(
    view: ObservedQuorum, node_id: int, voter: ReplicaLag | None, observer: ReplicaLag | None
) -> PreflightCheck:
    """A voter that lives is what was wished for; beside a dead one, a new disk may be about to come."""
    if voter is None:
        return PreflightCheck(name="not a voter yet", passed=True, detail=f"node {node_id} is no voter")
    if observer is not None:
        detail = f"voter {node_id} has directory {voter.directory_id}; directory {observer.directory_id} only observes"
    else:
        detail = f"node {node_id} is a voter already (directory {voter.directory_id})"
    return PreflightCheck(
        name="not a voter yet",
        passed=False,
        detail=detail,
        remedy=f"if its disk was replaced, `kquorum quorum remove-voter {node_id}` takes the old one out first",
        is_wished=observer is None and view.has_looked_on and view.is_alive(voter),
    )


def _where(voter: ReplicaLag) -> str:
    """A static quorum knows of no directories."""
    return f" with directory {voter.directory_id}" if voter.directory_id else ""


def remove_voter_checks(view: ObservedQuorum, node_id: int) -> list[PreflightCheck]:
    status = view.status
    voters = {replica.replica_id: replica for replica in status.voters}
    rest = [replica for replica in status.voters if replica.replica_id != node_id]
    named = ", ".join(str(voter_id) for voter_id in voters)
    checks = [
        dynamic(view),
        leader_commits(view),
        PreflightCheck(
            name="a voter",
            passed=node_id in voters,
            detail=f"node {node_id} votes{_where(voters[node_id])}; the voters are {named}"
            if node_id in voters
            else f"node {node_id} is no voter; the voters are {named}",
            remedy="there is nothing to do",
            is_wished=node_id not in voters,
        ),
        PreflightCheck(
            name="not the last",
            passed=node_id not in voters or len(voters) > 1,
            detail=f"{counted(len(rest), 'voter')} would remain"
            if rest
            else f"node {node_id} is the only voter",
            remedy="add another voter first",
        ),
    ]
    if rest:
        alive = [replica.replica_id for replica in rest if view.is_alive(replica)]
        checks.append(majority([replica.replica_id for replica in rest], alive))
    if node_id == status.leader_id and rest:
        checks.append(_leader_may_go(node_id, [replica.replica_id for replica in rest]))
    return checks


def _leader_may_go(leader_id: int, rest: Sequence[int]) -> PreflightCheck:
    if len(rest) == 1:
        return PreflightCheck(
            name="leader",
            passed=False,
            detail=f"node {leader_id} leads one other voter only; were it to crash just then, neither could be elected",
            remedy=f"`kquorum quorum transfer-leadership {rest[0]}` first",
        )
    detail = (
        f"node {leader_id} leads; it leads on until its removal is committed, then another voter is elected"
    )
    return PreflightCheck(name="leader", passed=True, detail=detail)


def transfer_checks(view: ObservedQuorum, node_id: int) -> list[PreflightCheck]:
    voter = view.status.voter(node_id)
    named = ", ".join(str(replica.replica_id) for replica in view.status.voters)
    checks = [
        PreflightCheck(
            name="a voter",
            passed=voter is not None,
            detail=f"the voters are {named}",
            remedy="only a voter can lead: name one of them",
        ),
        PreflightCheck(
            name="not the leader",
            passed=node_id != view.status.leader_id,
            detail=f"node {view.status.leader_id} leads epoch {view.status.leader_epoch}",
            remedy="there is nothing to do",
            is_wished=node_id == view.status.leader_id,
        ),
    ]
    if voter is not None and node_id != view.status.leader_id:
        checks += caught_up(view, node_id, voter)
    return checks


def upgrade_checks(view: ObservedQuorum) -> list[PreflightCheck]:
    level = view.levels.get(METADATA_VERSION, 0)
    silent = [str(voter.replica_id) for voter in view.status.voters if not view.is_alive(voter)]
    return [
        PreflightCheck(
            name="static",
            passed=view.kraft_version == 0,
            detail=f"kraft.version is {view.kraft_version}",
            remedy="there is nothing to do: the voters can be changed already",
            is_wished=view.kraft_version >= 1,
        ),
        PreflightCheck(
            name="metadata.version",
            passed=level >= DYNAMIC_QUORUM,
            detail=f"metadata.version is {level}; a dynamic quorum needs {DYNAMIC_QUORUM} (3.9-IV0) or later",
            remedy="format the cluster with a later one",
        ),
        PreflightCheck(
            name="all voters run",
            passed=not silent,
            detail=f"silent: {', '.join(silent)}"
            if silent
            else f"all of {counted(len(view.status.voters), 'voter')} fetch",
            remedy="start them: each voter tells the leader its directory id and its listeners",
            may_pass_later=True,
        ),
        leader_commits(view),
    ]
