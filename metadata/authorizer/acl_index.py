"""ACLs laid out for quick decisions: by resource, and within it by principal (KIP-290; Kafka's StandardAuthorizer).

What applies to a resource are the literal ACLs of its name, those of the name `*`, and the prefixed ones whose name it
begins with. For the last, its beginnings of those lengths are looked up that any prefix of its type has.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import accumulate
from typing import NamedTuple

from kquorum.metadata.authorizer.codes import ALLOWED_BY, Operation
from kquorum.metadata.image.security import AccessControlEntry
from kquorum.wire.addresses import normal_address

WILDCARD = "*"
ALL_USERS = "User:*"
_ALLOW = 3
_PREFIXED = 4


class Decision(Enum):
    """NO_ACLS: the resource has no ACLs, for any principal."""

    ALLOWED = "allowed"
    DENIED = "denied"
    NO_ACLS = "no ACLs"


class Rule(NamedTuple):
    host: str
    operation: int
    is_denial: bool


Rules = dict[str, list[Rule]]


class AclIndex:
    """Grows and shrinks with the ACLs, so that one more among very many costs what it costs alone."""

    def __init__(self) -> None:
        self._literal: dict[tuple[int, str], Rules] = {}
        self._prefixed: defaultdict[int, dict[str, Rules]] = defaultdict(dict)
        # Resource type -> the lengths of its prefixes, in order, and how many prefixes have each.
        self._lengths: dict[int, list[int]] = {}
        self._with_length: defaultdict[int, Counter[int]] = defaultdict(Counter)

    def add(self, acl: AccessControlEntry) -> None:
        if acl.pattern_type == _PREFIXED:
            by_name = self._prefixed[acl.resource_type]
            if acl.resource_name not in by_name:
                by_name[acl.resource_name] = {}
                self._count_prefix(acl, 1)
            rules = by_name[acl.resource_name]
        else:
            rules = self._literal.setdefault((acl.resource_type, acl.resource_name), {})
        rules.setdefault(acl.principal, []).append(_rule(acl))

    def remove(self, acl: AccessControlEntry) -> None:
        """One that was added."""
        is_prefix = acl.pattern_type == _PREFIXED
        by_name = self._prefixed[acl.resource_type] if is_prefix else {}
        key = (acl.resource_type, acl.resource_name)
        rules = by_name[acl.resource_name] if is_prefix else self._literal[key]
        rules[acl.principal].remove(_rule(acl))
        if not rules[acl.principal]:
            del rules[acl.principal]
        if rules:
            return
        if is_prefix:
            del by_name[acl.resource_name]
            self._count_prefix(acl, -1)
        else:
            del self._literal[key]

    def _count_prefix(self, acl: AccessControlEntry, change: int) -> None:
        counts = self._with_length[acl.resource_type]
        counts[len(acl.resource_name)] += change
        self._lengths[acl.resource_type] = sorted(length for length, count in counts.items() if count)

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Decision:
        """One denial that matches outweighs whatever allows."""
        allowing = ALLOWED_BY[operation]
        has_acls = is_allowed = False
        for rules in self._rules_of(resource_type, name):
            has_acls = True
            for rule in _rules_for(rules, principal, host):
                if not rule.is_denial:
                    is_allowed = is_allowed or rule.operation in allowing
                elif rule.operation in (operation, Operation.ALL):
                    return Decision.DENIED
        if is_allowed:
            return Decision.ALLOWED
        return Decision.DENIED if has_acls else Decision.NO_ACLS

    def allowed_operations(
        self, principal: str, host: str, resource_type: int, name: str, operations: Iterable[int]
    ) -> set[int] | None:
        """Those of `operations` that `decide` allows, at one go; None where there are no ACLs for the resource."""
        allowed: set[int] = set()
        denied: set[int] = set()
        has_acls = False
        for rules in self._rules_of(resource_type, name):
            has_acls = True
            for rule in _rules_for(rules, principal, host):
                (denied if rule.is_denial else allowed).add(rule.operation)
        if not has_acls:
            return None
        if Operation.ALL in denied:
            return set()
        return {
            each for each in operations if each not in denied and not allowed.isdisjoint(ALLOWED_BY[each])
        }

    def allows_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether some resource of this type may be used so, one that there is or one that there could be.

        Implied operations do not count here, in Kafka either (Authorizer.authorizeByResourceType).
        """
        literal = {
            name: effect
            for (of_type, name), rules in self._literal.items()
            if of_type == resource_type and (effect := _effect(rules, principal, host, operation))
        }
        if literal.get(WILDCARD) is Decision.DENIED:
            return False
        if literal.get(WILDCARD) is Decision.ALLOWED:
            return True
        prefixed = {
            name: effects
            for name, rules in self._prefixed[resource_type].items()
            if (effects := _effects(rules, principal, host, operation))
        }
        denied = {name for name, effects in prefixed.items() if Decision.DENIED in effects}
        allowed = [name for name, effect in literal.items() if effect is Decision.ALLOWED]
        allowed += [name for name, effects in prefixed.items() if Decision.ALLOWED in effects]
        return any(denied.isdisjoint(accumulate(name)) for name in allowed)

    def _rules_of(self, resource_type: int, name: str) -> Iterator[Rules]:
        for literal in {name, WILDCARD}:
            rules = self._literal.get((resource_type, literal))
            if rules is not None:
                yield rules
        lengths = self._lengths.get(resource_type)
        if lengths:
            by_prefix = self._prefixed[resource_type]
            for length in lengths[: bisect_right(lengths, len(name))]:
                rules = by_prefix.get(name[:length])
                if rules is not None:
                    yield rules


def _rule(acl: AccessControlEntry) -> Rule:
    """As in Kafka what does not allow denies: a permission of a later release is none to us."""
    return Rule(normal_address(acl.host), acl.operation, acl.permission_type != _ALLOW)


def _rules_for(rules: Rules, principal: str, host: str) -> Iterator[Rule]:
    host = normal_address(host)
    for who in (principal, ALL_USERS):
        for rule in rules.get(who, ()):
            if rule.host in (WILDCARD, host):
                yield rule


def _effects(rules: Rules, principal: str, host: str, operation: int) -> set[Decision]:
    return {
        Decision.DENIED if rule.is_denial else Decision.ALLOWED
        for rule in _rules_for(rules, principal, host)
        if rule.operation in (operation, Operation.ALL)
    }


def _effect(rules: Rules, principal: str, host: str, operation: int) -> Decision | None:
    """Of one name, where a denial wins."""
    effects = _effects(rules, principal, host, operation)
    return Decision.DENIED if Decision.DENIED in effects else next(iter(effects), None)
