"""What a listener asks the authorizer about one API, as the registries of APIs state it.

What a broker asks in its own handlers, topic by topic, is in `broker.client_access`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.cluster_rules import OnCluster
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.authorizer.verdict import Verdict
from kquorum.metadata.controller.requests import ControllerRequest

Rule = Callable[[Access, ControllerRequest], Verdict]
# None after each slice, and last the verdict.
RuleInSlices = Callable[[Access, ControllerRequest], Iterator[Verdict | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """`rule` judges a request before its handler runs.

    `needs_body` is False where the rule asks one question about the cluster as a whole and the refusal has no entries:
    such a request is refused before its body is read. `needs_authorizer` is False where the rule also holds in a
    cluster without an authorizer. `is_for_voters` is True where only voters send the request, and only to each other.
    `slices` is the same rule for requests of so many entries that `rule` takes long.
    """

    rule: Rule
    needs_body: bool = True
    needs_authorizer: bool = True
    is_for_voters: bool = False
    slices: RuleInSlices | None = None


def on_cluster(
    operation: Operation, *, needs_body: bool = False, is_for_voters: bool = False
) -> Authorization:
    """One operation on the cluster; `needs_body` where the refusal has an entry for each entry of the request."""
    return Authorization(rule=OnCluster(operation), needs_body=needs_body, is_for_voters=is_for_voters)
