"""Decisions over ACLs: Kafka's rules one by one, and all of them against a loop over all ACLs."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.metadata.authorizer.authorizer import (
    Authorizer,
    AuthorizerConfig,
    NotLoadedError,
    parse_principals,
)
from kquorum.metadata.authorizer.codes import TOPIC_OPERATIONS, Operation, ResourceType
from kquorum.metadata.image.security import AccessControlEntry
from tests.support.acl_worlds import (
    ADMIN,
    ALICE,
    ALLOW,
    BOB,
    DENY,
    HERE,
    LITERAL,
    PREFIXED,
    THERE,
    acl,
    acls_of,
    authorizer,
    plain_decision,
)

READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
TOPIC = ResourceType.TOPIC
NAMES = st.sampled_from(["a", "ab", "abc", "abd", "b", "*", "**"])
ENTRIES = st.builds(
    acl,
    st.integers(0, 15),
    NAMES,
    st.sampled_from([2, 3]),
    principal=st.sampled_from([ALICE, BOB, ADMIN, "User:*", "Group:alice"]),
    pattern_type=st.sampled_from([LITERAL, PREFIXED]),
    host=st.sampled_from(["*", HERE, THERE]),
    permission_type=st.sampled_from([DENY, ALLOW, ALLOW]),
)
QUESTIONS = st.tuples(
    st.sampled_from([ALICE, BOB, ADMIN, "Group:alice"]),
    st.sampled_from([HERE, THERE]),
    st.sampled_from(list(Operation)[1:]),
    st.sampled_from([2, 3]),
    NAMES,
)


@given(st.lists(ENTRIES, max_size=12), st.lists(QUESTIONS, min_size=1, max_size=12), st.booleans())
def test_decisions_are_those_of_a_loop_over_all_acls(
    entries: list[AccessControlEntry],
    questions: list[tuple[str, str, Operation, int, str]],
    allow_everyone: bool,
) -> None:
    judge, acls = authorizer(allow_everyone=allow_everyone), acls_of(entries)
    for question in questions:
        wanted = plain_decision(entries, *question, allow_everyone=allow_everyone)
        assert judge.allows(acls, *question) is wanted, question


@given(st.lists(ENTRIES, max_size=8), st.sampled_from([ALICE, BOB]), st.sampled_from([READ, WRITE]))
def test_some_resource_is_allowed_if_a_name_can_be_found_that_is(
    entries: list[AccessControlEntry], principal: str, operation: Operation
) -> None:
    """Except that names without an ACL do not count, and that one denial for all names ends it, as in Kafka."""
    direct = [each for each in entries if each.operation in (operation, 2)]
    judge, acls = authorizer(), acls_of(direct)
    candidates = {each.resource_name for each in direct} | {"hardcode"}
    wanted = any(
        plain_decision(direct, principal, HERE, operation, TOPIC, name, allow_everyone=False)
        for name in candidates
    )
    if wanted:
        assert judge.allows_any(acls, principal, HERE, operation, TOPIC)
    elif not any(each.resource_name == "*" for each in direct):
        assert not judge.allows_any(acls, principal, HERE, operation, TOPIC)


@given(st.lists(ENTRIES, max_size=10), QUESTIONS, st.booleans())
def test_all_operations_together_are_those_one_by_one(
    entries: list[AccessControlEntry],
    question: tuple[str, str, Operation, int, str],
    allow_everyone: bool,
) -> None:
    judge, acls = authorizer(allow_everyone=allow_everyone), acls_of(entries)
    principal, host, _, _, name = question
    one_by_one = {each for each in TOPIC_OPERATIONS if judge.allows(acls, principal, host, each, TOPIC, name)}
    assert set(judge.operations(acls, principal, host, TOPIC, name)) == one_by_one


@given(st.lists(st.lists(ENTRIES, max_size=8), min_size=2, max_size=5), QUESTIONS)
def test_an_index_that_grew_and_shrank_is_as_one_made_again(
    generations: list[list[AccessControlEntry]], question: tuple[str, str, Operation, int, str]
) -> None:
    """Some ACLs stay from one image to the next, some go, and there are equal ones among them."""
    judge, kept = authorizer(), list[AccessControlEntry]()
    for entries in generations:
        kept = [*kept[::2], *entries]
        wanted = plain_decision(kept, *question, allow_everyone=False)
        assert judge.allows(acls_of(kept), *question) is wanted


def allowed(*entries: AccessControlEntry, operation: Operation = READ, name: str = "orders") -> bool:
    return authorizer().allows(acls_of(entries), ALICE, HERE, operation, TOPIC, name)


def test_without_acls_only_super_users_may_do_anything() -> None:
    assert not allowed()
    assert authorizer().allows(acls_of(()), ADMIN, HERE, READ, TOPIC, "orders")
    assert authorizer(allow_everyone=True).allows(acls_of(()), ALICE, HERE, READ, TOPIC, "orders")


def test_without_acls_all_are_allowed_until_an_acl_for_another_user() -> None:
    judge, acls = authorizer(allow_everyone=True), acls_of([acl(READ, "orders", principal=BOB)])
    assert not judge.allows(acls, ALICE, HERE, READ, TOPIC, "orders")
    assert judge.allows(acls, ALICE, HERE, READ, TOPIC, "payments")


def test_a_denial_outweighs_any_number_of_permissions() -> None:
    may = acl(READ, "orders"), acl(Operation.ALL, "*"), acl(READ, "ord", pattern_type=PREFIXED)
    assert allowed(*may)
    for name, pattern_type in (("orders", LITERAL), ("*", LITERAL), ("o", PREFIXED)):
        assert not allowed(*may, acl(READ, name, pattern_type=pattern_type, permission_type=DENY))
    assert allowed(*may, acl(WRITE, "orders", permission_type=DENY))
    assert not allowed(*may, acl(READ, "orders", principal="User:*", permission_type=DENY))


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER])
def test_what_implies_describe_does_so_only_where_it_allows(operation: Operation) -> None:
    assert allowed(acl(operation, "orders"), operation=DESCRIBE)
    denied = acl(operation, "orders", permission_type=DENY)
    assert allowed(acl(DESCRIBE, "orders"), denied, operation=DESCRIBE)


def test_prefixes_begin_names_and_wildcards_are_only_literal() -> None:
    assert allowed(acl(READ, "ord", pattern_type=PREFIXED))
    assert allowed(acl(READ, "orders", pattern_type=PREFIXED))
    assert not allowed(acl(READ, "orders-of-today", pattern_type=PREFIXED))
    assert not allowed(acl(READ, "*", pattern_type=PREFIXED))
    assert allowed(acl(READ, "*", pattern_type=PREFIXED), name="*x")


def test_hosts_are_distinguished() -> None:
    acls = acls_of([acl(READ, "orders", host=THERE)])
    assert not authorizer().allows(acls, ALICE, HERE, READ, TOPIC, "orders")
    assert authorizer().allows(acls, ALICE, THERE, READ, TOPIC, "orders")


def test_before_the_acls_are_read_super_users_alone_may_do_anything() -> None:
    is_loaded = False
    judge = Authorizer(
        AuthorizerConfig(super_users=frozenset({ADMIN}), allow_everyone_if_no_acl_found=True),
        lambda: is_loaded,
    )
    assert judge.allows(acls_of(()), ADMIN, HERE, READ, TOPIC, "orders")
    with pytest.raises(NotLoadedError):
        judge.allows(acls_of(()), ALICE, HERE, READ, TOPIC, "orders")
    is_loaded = True
    assert judge.allows(acls_of(()), ALICE, HERE, READ, TOPIC, "orders")


def test_super_users_are_separated_by_semicolons() -> None:
    assert parse_principals("User:admin; User:CN=node,OU=ops ;;") == {"User:admin", "User:CN=node,OU=ops"}
    assert parse_principals("") == frozenset()
    for wrong in ("admin", "User:", ":x", "User:a;b"):
        with pytest.raises(ValueError, match="is not a principal"):
            parse_principals(wrong)


def test_ten_thousand_acls_are_as_quick_as_ten() -> None:
    """A loop over all of them would take a thousand times as long; a busy machine must not fail this."""
    random_source = random.Random(1)
    entries = [
        acl(
            random_source.choice([READ, WRITE, DESCRIBE]),
            f"topic-{random_source.randrange(5000)}" + "-x" * random_source.randrange(9),
            principal=f"User:u{random_source.randrange(100)}",
            pattern_type=random_source.choice([LITERAL, PREFIXED]),
        )
        for _ in range(10_000)
    ]

    def seconds(count: int) -> float:
        judge, acls = authorizer(), acls_of(entries[:count])
        judge.index(acls)
        began = time.process_time()
        for number in range(3_000):
            judge.allows(acls, f"User:u{number % 100}", HERE, READ, TOPIC, f"topic-{number}-x-x")
        return time.process_time() - began

    assert seconds(10_000) < 20 * max(seconds(10), 0.001)
