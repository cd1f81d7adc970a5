"""Every workload by its name."""

from tests.jepsen.workloads import (
    audit,
    config_set,
    leader_lease,
    log_order,
    membership,
    register,
    topics_set,
)
from tests.jepsen.workloads.workload import WorkloadKind

WORKLOADS: dict[str, WorkloadKind] = {
    kind.name: kind
    for kind in (
        topics_set.KIND,
        register.KIND,
        config_set.KIND,
        log_order.KIND,
        leader_lease.KIND,
        membership.KIND,
        audit.KIND,
    )
}
ALL = "all"


class UnknownWorkload(Exception):
    """The text names it, and those that there are."""


def kinds_of(text: str) -> tuple[WorkloadKind, ...]:
    """`a,b` or `all`; in the order of the catalogue, each once. Raises UnknownWorkload."""
    names = set(WORKLOADS) if text == ALL else {name.strip() for name in text.split(",")}
    if unknown := sorted(names - set(WORKLOADS)):
        raise UnknownWorkload(
            f"no workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}, and {ALL}"
        )
    return tuple(kind for name, kind in WORKLOADS.items() if name in names)
