"""The pre-flight of a change of the voters: everything that speaks against it, each point with its remedy.

The leader checks again and has the last word; what is looked at here is what an operator can act on, also where the
leader would say yes and the quorum would stand still afterwards.
"""

from collections.abc import Sequence

from cli.quorum_status import ReplicaLag
from cli.quorum_view import METADATA_VERSION, QuorumView
from cli.voter_points import (
    Candidate,
    Check,
    caught_up,
    dynamic,
    has_endpoint,
    is_a_controller,
    leader_commits,
    majority,
    observed,
)
from wire.wording import counted

DYNAMIC_METADATA_VERSION = 21


def add_voter_checks(view: QuorumView, candidate: Candidate) -> list[Check]:
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
    alive = [replica.replica_id for replica in status.voters if view.is_alive(replica)]
    # An observer with the id of a voter is that node's new disk: it is not the voter, and it would not join.
    joins = voter is None and observer is not None and view.is_alive(observer)
    checks.append(majority([*ids, node_id], [*alive, node_id] if joins else alive))
    return checks


def _ran_before(view: QuorumView, observer: ReplicaLag, voter: ReplicaLag) -> bool:
    """Whether the observer is the disk that the voter's node had before: the leader remembers it for minutes."""
    if voter.replica_id == view.status.leader_id:
        return True
    return (observer.last_fetch_timestamp_ms or 0) < (voter.last_fetch_timestamp_ms or 0)


def _not_a_voter_yet(
    view: QuorumView, node_id: int, voter: ReplicaLag | None, observer: ReplicaLag | None
) -> Check:
    """A voter that lives is what was wished for; beside a dead one, a new disk may be about to come."""
    if voter is None:
        return Check(name="not a voter yet", passed=True, detail=f"node {node_id} is no voter")
    if observer is not None:
        detail = f"voter {node_id} has directory {voter.directory_id}; directory {observer.directory_id} only observes"
    else:
        detail = f"node {node_id} is a voter already (directory {voter.directory_id})"
    return Check(
        name="not a voter yet",
        passed=False,
        detail=detail,
        remedy=f"if its disk was replaced, `kquorum quorum remove-voter {node_id}` takes the old one out first",
        is_wished=observer is None and view.has_looked_on and view.is_alive(voter),
    )


def _where(voter: ReplicaLag) -> str:
    """A static quorum knows of no directories."""
    return f" with directory {voter.directory_id}" if voter.directory_id else ""


def remove_voter_checks(view: QuorumView, node_id: int) -> list[Check]:
    status = view.status
    voters = {replica.replica_id: replica for replica in status.voters}
    rest = [replica for replica in status.voters if replica.replica_id != node_id]
    named = ", ".join(str(voter_id) for voter_id in voters)
    checks = [
        dynamic(view),
        leader_commits(view),
        Check(
            name="a voter",
            passed=node_id in voters,
            detail=f"node {node_id} votes{_where(voters[node_id])}; the voters are {named}"
            if node_id in voters
            else f"node {node_id} is no voter; the voters are {named}",
            remedy="there is nothing to do",
            is_wished=node_id not in voters,
        ),
        Check(
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


def _leader_may_go(leader_id: int, rest: Sequence[int]) -> Check:
    if len(rest) == 1:
        return Check(
            name="leader",
            passed=False,
            detail=f"node {leader_id} leads one other voter only; were it to crash just then, neither could be elected",
            remedy=f"`kquorum quorum transfer-leadership {rest[0]}` first",
        )
    detail = (
        f"node {leader_id} leads; it leads on until its removal is committed, then another voter is elected"
    )
    return Check(name="leader", passed=True, detail=detail)


def transfer_checks(view: QuorumView, node_id: int) -> list[Check]:
    voter = view.status.voter(node_id)
    named = ", ".join(str(replica.replica_id) for replica in view.status.voters)
    checks = [
        Check(
            name="a voter",
            passed=voter is not None,
            detail=f"the voters are {named}",
            remedy="only a voter can lead: name one of them",
        ),
        Check(
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


def upgrade_checks(view: QuorumView) -> list[Check]:
    level = view.levels.get(METADATA_VERSION, 0)
    silent = [str(voter.replica_id) for voter in view.status.voters if not view.is_alive(voter)]
    return [
        Check(
            name="static",
            passed=view.kraft_version == 0,
            detail=f"kraft.version is {view.kraft_version}",
            remedy="there is nothing to do: the voters can be changed already",
            is_wished=view.kraft_version >= 1,
        ),
        Check(
            name="metadata.version",
            passed=level >= DYNAMIC_METADATA_VERSION,
            detail=f"metadata.version is {level}; a dynamic quorum needs {DYNAMIC_METADATA_VERSION} (3.9-IV0) or later",
            remedy="format the cluster with a later one",
        ),
        Check(
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
