"""From facts to findings, without I/O: what is wrong, how bad it is, and what to do."""

from collections.abc import Iterable, Iterator, Sequence

from kquorum.cli.commands.doctor.facts import ClusterFacts, Node, Partition, Space
from kquorum.cli.commands.doctor.findings import Check, Finding, Report, Severity
from kquorum.wire.wording import counted

CLOCK_WARNING_MS = 1_000
# A node is not ready where clocks differ by more than a minute (docs/observability.md).
CLOCK_PROBLEM_MS = 30_000
LAG_LIMIT = 1_000
SPACE_WARNING, SPACE_PROBLEM = 0.15, 0.05
INODES_WARNING, INODES_PROBLEM = 0.10, 0.03
# A node keeps 16 MiB in reserve and goes read-only below.
LEAST_SPACE_BYTES = 1024**3
HOURS_WARNING, HOURS_PROBLEM = 72, 12
FILES_WARNING, FILES_PROBLEM = 0.7, 0.9
LEAST_FILES = 4_096
CERTIFICATE_WARNING_DAYS, CERTIFICATE_PROBLEM_DAYS = 30, 3
_DAY_MS = 86_400_000
_NAMED = 5


def judge(facts: ClusterFacts, report: Report) -> None:
    """Of all that is known of the running cluster."""
    report.add(Check.NODES, counted(len(facts.nodes), "node"), _of_nodes(facts))
    report.add(Check.QUORUM, _voters_text(facts), _of_quorum(facts))
    _clocks(facts, report)
    _versions(facts, report)
    _brokers(facts, report)
    _partitions(facts, report)
    _states(facts, report)
    spaces = [(node, space) for node in facts.nodes for space in node.spaces]
    if spaces:
        report.add(Check.DISKS, counted(len(spaces), "folder"), _of_spaces(spaces))
    else:
        report.skip(Check.DISKS, "no node tells of its folders, and none is on this machine")
    telling = [node for node in facts.nodes if node.max_open_files is not None]
    if telling:
        report.add(Check.DESCRIPTORS, counted(len(telling), "node"), _of_descriptors(telling))
    else:
        report.skip(
            Check.DESCRIPTORS, "no node tells: `kquorum.grpc.listener` is not set, or the version is older"
        )
    if facts.certificates:
        report.add(
            Check.CERTIFICATES, counted(len(facts.certificates), "certificate"), _of_certificates(facts)
        )
    else:
        report.skip(Check.CERTIFICATES, "no listener has TLS")


def _finding(check: Check, severity: Severity, place: str, found: str, remedy: str) -> Finding:
    return Finding(check=check, severity=severity, place=place, found=found, remedy=remedy)


# Nodes


def _of_nodes(facts: ClusterFacts) -> Iterator[Finding]:
    for node in facts.nodes:
        place = f"node {node.node_id}"
        if node.silence is not None:
            start = f"kquorum start -c {facts.config} --node {node.node_id}"
            yield _finding(
                Check.NODES,
                Severity.PROBLEM,
                place,
                f"it does not answer: {node.silence}",
                f"on its machine look at kquorum.log in its metadata folder, and start it: `{start}`",
            )
            continue
        if (
            node.cluster_id is not None
            and facts.cluster_id is not None
            and node.cluster_id != facts.cluster_id
        ):
            yield _finding(
                Check.NODES,
                Severity.PROBLEM,
                place,
                f"it belongs to cluster {node.cluster_id}, and the config is of {facts.cluster_id}",
                f"correct the address {node.address} or cluster.id in {facts.config}",
            )
        if node.not_ready:
            yield _finding(
                Check.NODES,
                Severity.PROBLEM,
                place,
                f"it is not ready: {node.not_ready}",
                "if it does not pass, look at kquorum.log in its metadata folder (docs/troubleshooting.md)",
            )


# The quorum


def _voters_text(facts: ClusterFacts) -> str:
    return "no leader" if facts.quorum is None else counted(len(facts.quorum.voters), "voter")


def _of_quorum(facts: ClusterFacts) -> Iterator[Finding]:
    if facts.quorum is None:
        yield _finding(
            Check.QUORUM,
            Severity.PROBLEM,
            "quorum",
            f"no leader answers: {facts.quorum_fault}",
            f"start the silent controllers; `kquorum quorum status -c {facts.config}` says which are needed",
        )
        return
    voters = facts.quorum.voters
    majority = len(voters) // 2 + 1
    counting = [each for each in voters if each.alive is not False]
    if len(voters) > 1 and len(counting) == majority:
        silent = " ".join(str(each.node_id) for each in voters if each.alive is False)
        severity = Severity.PROBLEM if len(voters) > 2 else Severity.WARNING
        found = f"{len(counting)} of {len(voters)} voters follow: the loss of one more stops all changes"
        if silent:
            yield _finding(
                Check.QUORUM, severity, "quorum", found, f"start the voters that are away: {silent}"
            )
        else:
            yield _finding(
                Check.QUORUM,
                Severity.NOTE,
                "quorum",
                f"{counted(len(voters), 'voter')}: the loss of one stops all changes",
                "three voters bear the loss of one: `kquorum quorum add-voter`",
            )
    # They have a finding as nodes.
    silent_nodes = {node.node_id for node in facts.nodes if node.silence is not None}
    for each in facts.quorum.replicas:
        if each.node_id in silent_nodes:
            continue
        kind = "voter" if each.is_voter else "observer"
        if each.alive is False:
            yield _finding(
                Check.QUORUM,
                Severity.WARNING,
                f"node {each.node_id}",
                f"this {kind} has not fetched from leader {facts.quorum.leader_id} lately",
                "start it, or see why it does not reach the leader: kquorum.log in its metadata folder",
            )
        elif each.lag is not None and each.lag > LAG_LIMIT:
            yield _finding(
                Check.QUORUM,
                Severity.WARNING,
                f"node {each.node_id}",
                f"this {kind} is {counted(each.lag, 'record')} behind the leader",
                f"if it does not catch up, see its disk and network: `kquorum quorum status -c {facts.config}`",
            )


# Clocks


def _clocks(facts: ClusterFacts, report: Report) -> None:
    telling = [node for node in facts.nodes if node.clock_ms is not None]
    if len(telling) < 2:
        report.skip(Check.CLOCKS, "fewer than two nodes tell the time: `kquorum.grpc.listener` is needed")
        return
    report.add(Check.CLOCKS, counted(len(telling), "clock"), _of_clocks(telling))


def _of_clocks(nodes: Sequence[Node]) -> Iterator[Finding]:
    """Each against the one in the middle."""
    in_order = sorted(nodes, key=lambda node: node.clock_ms or 0)
    middle = in_order[(len(in_order) - 1) // 2]
    for node in nodes:
        assert node.clock_ms is not None
        assert middle.clock_ms is not None
        apart_ms = abs(node.clock_ms - middle.clock_ms) - node.clock_error_ms - middle.clock_error_ms
        if apart_ms < CLOCK_WARNING_MS:
            continue
        way = "ahead of" if node.clock_ms > middle.clock_ms else "behind"
        yield _finding(
            Check.CLOCKS,
            Severity.PROBLEM if apart_ms >= CLOCK_PROBLEM_MS else Severity.WARNING,
            f"node {node.node_id}",
            f"its clock is at least {apart_ms / 1000:.1f} s {way} that of node {middle.node_id}",
            "synchronize the clock of its machine: `timedatectl timesync-status`, `chronyc tracking`",
        )


# Versions and features


def _versions(facts: ClusterFacts, report: Report) -> None:
    if not facts.supported and not any(node.version for node in facts.nodes):
        report.skip(Check.VERSIONS, "no node answers")
        return
    report.add(Check.VERSIONS, counted(len(facts.finalized), "feature"), _of_versions(facts))


def _of_versions(facts: ClusterFacts) -> Iterator[Finding]:
    by_version: dict[str, list[int]] = {}
    for node in facts.nodes:
        if node.version:
            by_version.setdefault(node.version, []).append(node.node_id)
    if len(by_version) > 1:
        listed = "; ".join(
            f"{version}: nodes {' '.join(map(str, ids))}" for version, ids in by_version.items()
        )
        yield _finding(
            Check.VERSIONS,
            Severity.WARNING,
            "nodes",
            f"they run different versions: {listed}",
            "finish the upgrade node by node: `kquorum may upgrade NODE...` says when",
        )
    for feature, level in sorted(facts.finalized.items()):
        unable = [
            name
            for name, ranges in facts.supported.items()
            if not ranges.get(feature, (0, 0))[0] <= level <= ranges.get(feature, (0, 0))[1]
        ]
        if unable:
            yield _finding(
                Check.VERSIONS,
                Severity.PROBLEM,
                ", ".join(unable),
                f"the level {level} of {feature} is in force, and this version cannot run it",
                "upgrade these nodes, or lower the level with `kquorum features downgrade`",
            )


# Brokers and partitions


def _brokers(facts: ClusterFacts, report: Report) -> None:
    if facts.brokers is None:
        report.skip(Check.BROKERS, facts.brokers_fault)
        return
    report.add(Check.BROKERS, counted(len(facts.brokers), "broker"), _of_brokers(facts))


def _of_brokers(facts: ClusterFacts) -> Iterator[Finding]:
    configured = {node.node_id for node in facts.nodes if "broker" in node.roles}
    registered = {each.broker_id for each in facts.brokers or ()}
    for each in facts.brokers or ():
        place = f"broker {each.broker_id}"
        if each.state == "fenced":
            gone = "" if each.broker_id in configured else ", and the config does not have it"
            yield _finding(
                Check.BROKERS,
                Severity.PROBLEM,
                place,
                f"it is fenced{gone}: clients are not sent to it",
                "start it; if it is gone for good, `kquorum reassign plan --remove-broker "
                f"{each.broker_id}` and `kquorum brokers unregister {each.broker_id}`",
            )
        elif each.lag is not None and each.lag > LAG_LIMIT:
            yield _finding(
                Check.BROKERS,
                Severity.WARNING,
                place,
                f"it is {counted(each.lag, 'record')} of metadata behind",
                f"if it does not catch up, see its load: `kquorum brokers -c {facts.config}`",
            )
    for broker_id in sorted(configured - registered):
        yield _finding(
            Check.BROKERS,
            Severity.PROBLEM,
            f"broker {broker_id}",
            "the config has it, and it is not registered",
            f"start it: `kquorum start -c {facts.config} --node {broker_id}`",
        )


def _partitions(facts: ClusterFacts, report: Report) -> None:
    if facts.partitions is None:
        report.skip(Check.PARTITIONS, facts.partitions_fault)
        return
    report.add(
        Check.PARTITIONS, counted(len(facts.partitions), "partition"), _of_partitions(facts.partitions)
    )


def _of_partitions(partitions: Sequence[Partition]) -> Iterator[Finding]:
    """Each partition in one finding at most: the worst."""
    offline = [each for each in partitions if each.leader < 0]
    led = [each for each in partitions if each.leader >= 0]
    below = [
        each
        for each in led
        if each.min_isr is not None and len(each.isr) < min(each.min_isr, len(each.replicas))
    ]
    short = [each for each in led if each not in below and len(each.isr) < len(each.replicas)]
    single = [each for each in led if len(each.replicas) == 1]
    if offline:
        yield _finding(
            Check.PARTITIONS,
            Severity.PROBLEM,
            _names(offline),
            f"{counted(len(offline), 'partition')} without a leader: no one can read or write there",
            f"start their brokers: {_brokers_of(offline)}; if those are lost, `kquorum elect-leaders --type unclean` "
            "may lose records",
        )
    if below:
        yield _finding(
            Check.PARTITIONS,
            Severity.PROBLEM,
            _names(below),
            f"{counted(len(below), 'partition')} below min.insync.replicas: writes with acks=all are refused",
            f"start the brokers whose replicas are not in sync: {_missing_of(below)}",
        )
    if short:
        yield _finding(
            Check.PARTITIONS,
            Severity.WARNING,
            _names(short),
            f"{counted(len(short), 'partition')} with replicas that are not in sync",
            f"start or relieve the brokers {_missing_of(short)}; `kquorum topics describe` shows the lag",
        )
    if single:
        yield _finding(
            Check.PARTITIONS,
            Severity.NOTE,
            _names(single),
            f"{counted(len(single), 'partition')} with one replica: a lost disk loses the records",
            "`kquorum reassign plan --replication-factor 3 --topic NAME`, if there are brokers for it",
        )


def _names(partitions: Sequence[Partition]) -> str:
    more = f" and {len(partitions) - _NAMED:,} more" if len(partitions) > _NAMED else ""
    return ", ".join(each.name for each in partitions[:_NAMED]) + more


def _brokers_of(partitions: Iterable[Partition]) -> str:
    return " ".join(map(str, sorted({broker for each in partitions for broker in each.replicas})))


def _missing_of(partitions: Iterable[Partition]) -> str:
    missing = {broker for each in partitions for broker in each.replicas if broker not in each.isr}
    return " ".join(map(str, sorted(missing)))


# State


def _states(facts: ClusterFacts, report: Report) -> None:
    if facts.quorum is None:
        report.skip(Check.STATE, "no leader compares the nodes' states")
        return
    differing = [each for each in facts.quorum.replicas if each.state_differs_at is not None]
    report.add(
        Check.STATE,
        counted(len(facts.quorum.replicas), "replica"),
        (
            _finding(
                Check.STATE,
                Severity.PROBLEM,
                f"node {each.node_id}",
                f"its metadata differ from those of leader {facts.quorum.leader_id} at offset {each.state_differs_at}",
                "compare their folders with `kquorum log verify` and `kquorum log state-hash`; keep a copy, and start "
                "the wrong one with an empty metadata log",
            )
            for each in differing
        ),
    )


# Machines


def _of_spaces(spaces: Sequence[tuple[Node, Space]]) -> Iterator[Finding]:
    for node, space in spaces:
        place = f"node {node.node_id}: {space.path}"
        if space.fault is not None:
            yield _finding(
                Check.DISKS,
                Severity.PROBLEM,
                place,
                f"the folder cannot be used: {space.fault}",
                "see the disk (`dmesg`, `mount`); a broker goes on with its other folders until it restarts",
            )
            continue
        yield from _of_bytes(place, space)
        yield from _of_inodes(place, space)


def _of_bytes(place: str, space: Space) -> Iterator[Finding]:
    if not space.total_bytes or space.usable_bytes is None:
        return
    share, free = space.usable_bytes / space.total_bytes, _size(space.usable_bytes)
    remedy = (
        "make room: lower retention.ms or retention.bytes of large topics (`kquorum log-dirs list --replicas`), move "
        "replicas (`kquorum reassign plan`), or enlarge the disk"
    )
    if share < SPACE_PROBLEM or space.usable_bytes < LEAST_SPACE_BYTES:
        yield _finding(
            Check.DISKS, Severity.PROBLEM, place, f"{free} are left, {share:.0%} of the disk", remedy
        )
    elif share < SPACE_WARNING:
        yield _finding(
            Check.DISKS, Severity.WARNING, place, f"{free} are left, {share:.0%} of the disk", remedy
        )
    if space.written_per_day:
        hours = space.usable_bytes / space.written_per_day * 24
        if hours < HOURS_WARNING:
            yield _finding(
                Check.DISKS,
                Severity.PROBLEM if hours < HOURS_PROBLEM else Severity.WARNING,
                place,
                f"{_size(space.written_per_day)} of logs were written in the last day: the space lasts {hours:.0f} h "
                "unless old segments are deleted",
                remedy,
            )


def _of_inodes(place: str, space: Space) -> Iterator[Finding]:
    # Some file systems have no fixed number, and tell 0.
    if not space.total_inodes or space.usable_inodes is None:
        return
    share = space.usable_inodes / space.total_inodes
    if share < INODES_WARNING:
        yield _finding(
            Check.DISKS,
            Severity.PROBLEM if share < INODES_PROBLEM else Severity.WARNING,
            place,
            f"{space.usable_inodes:,} inodes are left, {share:.0%}: each segment takes three or four",
            "raise segment.bytes of topics with many small segments, or make a new file system with more inodes",
        )


def _size(count: int) -> str:
    size, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:,.0f} {units[0]}" if units[0] == "bytes" else f"{size:,.1f} {units[0]}"


def _of_descriptors(nodes: Sequence[Node]) -> Iterator[Finding]:
    remedy = "raise the limit: LimitNOFILE= in its systemd unit, or `ulimit -n`, and restart it"
    for node in nodes:
        assert node.max_open_files is not None
        place = f"node {node.node_id}"
        share = (node.open_files or 0) / node.max_open_files if node.max_open_files else 1.0
        if share >= FILES_WARNING:
            yield _finding(
                Check.DESCRIPTORS,
                Severity.PROBLEM if share >= FILES_PROBLEM else Severity.WARNING,
                place,
                f"it has {node.open_files:,} of {node.max_open_files:,} files open",
                remedy,
            )
        elif node.max_open_files < LEAST_FILES:
            yield _finding(
                Check.DESCRIPTORS,
                Severity.WARNING,
                place,
                f"it may have only {node.max_open_files:,} files open, connections among them",
                remedy,
            )


def _of_certificates(facts: ClusterFacts) -> Iterator[Finding]:
    remedy = "replace it (docs/security.md): a node reads a new file without a restart"
    for each in facts.certificates:
        if each.ends_ms is None:
            yield _finding(
                Check.CERTIFICATES,
                Severity.WARNING,
                each.place,
                f"its certificate cannot be read: {each.fault}",
                "see the file and its permissions, or whether the listener has TLS",
            )
            continue
        days = (each.ends_ms - facts.now_ms) / _DAY_MS
        if days < 0:
            found = f"the certificate ended {-days:.0f} days ago"
        else:
            found = f"the certificate ends in {days:.0f} days"
        if days < CERTIFICATE_WARNING_DAYS:
            severity = Severity.PROBLEM if days < CERTIFICATE_PROBLEM_DAYS else Severity.WARNING
            yield _finding(Check.CERTIFICATES, severity, each.place, found, remedy)
