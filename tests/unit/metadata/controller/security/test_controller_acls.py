"""CreateAcls, DeleteAcls and DescribeAcls, from request to records to image."""

from typing import Any

import pytest

from kquorum.metadata.describe.acls import describe_acls
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.wire.messages.create_acls import AclCreationResult
from kquorum.wire.messages.delete_acls import DeleteAclsMatchingAcl
from kquorum.wire.messages.describe_acls import AclDescription, DescribeAclsResource, DescribeAclsResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.security import AccessControlEntryRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values, read_answer, request_of
from tests.support.controller_world import World, kinds
from tests.support.sliced_answers import whole

NONE, INVALID = ErrorCode.none, ErrorCode.invalid_request
TOPIC, CLUSTER, USER = 2, 4, 7
LITERAL, PREFIXED = 3, 4
ANY, MATCH = 1, 2
ALTER, DENY, ALLOW = 7, 2, 3
VERSIONS = (1, 2, 3)


def acl(**changes: Any) -> dict[str, Any]:
    values = {
        "resource_type": TOPIC,
        "resource_name": "*",
        "resource_pattern_type": LITERAL,
        "principal": "User:*",
        "host": "*",
        "operation": ALTER,
        "permission_type": ALLOW,
    }
    return values | changes


def acl_filter(**changes: Any) -> dict[str, Any]:
    """Matches everything but for the changes."""
    values = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return values | changes


def create(world: World, *acls: dict[str, Any], version: int = 3) -> list[Values]:
    results: list[Values] = world.ask(ApiKey.CREATE_ACLS, version, creations=acls).results
    return results


def delete(world: World, *filters: dict[str, Any], version: int = 3) -> list[Values]:
    results: list[Values] = world.ask(ApiKey.DELETE_ACLS, version, filters=filters).filter_results
    return results


def describe(world: World, version: int = 3, **changes: Any) -> DescribeAclsResponse:
    question = DescribeRequest(
        body=request_of(ApiKey.DESCRIBE_ACLS, version, acl_filter(**changes)),
        version=version,
        image=world.controller.committed_image,
        principal="User:alice",
        node_id=1,
    )
    response: DescribeAclsResponse = whole(describe_acls(question), version)
    assert read_answer(ApiKey.DESCRIBE_ACLS, version, response) == response
    return response


def names(world: World) -> list[str]:
    return sorted(each.resource_name for each in world.controller.committed_image.security.acls.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_an_acl_is_created_kept_described_and_deleted(version: int) -> None:
    world = World().lead()
    start = world.raft.log_end_offset
    assert create(world, acl(), version=version) == (AclCreationResult(error_message=None),)
    assert kinds(world, start) == ["AccessControlEntryRecord"]
    (entry,) = world.controller.committed_image.security.acls.values()
    assert (entry.resource_type, entry.resource_name, entry.pattern_type) == (TOPIC, "*", LITERAL)
    assert (entry.principal, entry.host, entry.operation, entry.permission_type) == (
        ("User:*", "*", ALTER, ALLOW)
    )

    pattern = {"resource_type": TOPIC, "resource_name": "*", "pattern_type": LITERAL}
    who = {"principal": "User:*", "host": "*", "operation": ALTER, "permission_type": ALLOW}
    described = DescribeAclsResource(**pattern, acls=(AclDescription(**who),))  # type: ignore[arg-type]
    assert describe(world, version).resources == (described,)

    (result,) = delete(world, acl_filter(), version=version)
    assert (result.error_code, result.matching_acls) == (
        NONE,
        (DeleteAclsMatchingAcl(error_message=None, **pattern, **who),),  # type: ignore[arg-type]
    )
    assert not world.controller.committed_image.security.acls
    assert kinds(world, start) == ["AccessControlEntryRecord", "RemoveAccessControlEntryRecord"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resource_pattern_type": 0}, "Invalid patternType UNKNOWN"),
        ({"resource_pattern_type": ANY}, "Invalid patternType ANY"),
        ({"resource_pattern_type": MATCH}, "Invalid patternType MATCH"),
        ({"resource_pattern_type": 5}, "Invalid patternType UNKNOWN"),
        ({"resource_type": 0}, "Invalid resourceType UNKNOWN"),
        ({"resource_type": ANY}, "Invalid resourceType ANY"),
        ({"resource_type": 8}, "Invalid resourceType UNKNOWN"),
        ({"operation": 0}, "Invalid operation UNKNOWN"),
        ({"operation": ANY}, "Invalid operation ANY"),
        ({"operation": 15}, "Invalid operation UNKNOWN"),
        ({"permission_type": 0}, "Invalid permissionType UNKNOWN"),
        ({"permission_type": ANY}, "Invalid permissionType ANY"),
        ({"permission_type": 4}, "Invalid permissionType UNKNOWN"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": CLUSTER}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"principal": "alice"}, 'The principal "alice" is not of the form type:name, such as User:alice'),
    ],
)
def test_an_invalid_acl_is_refused_and_the_others_are_created(changes: dict[str, Any], message: str) -> None:
    world = World().lead()
    results = create(world, acl(resource_name="a"), acl(**changes), acl(resource_name="b"))
    assert [result.error_code for result in results] == [NONE, INVALID, NONE]
    assert results[1].error_message == message
    assert names(world) == ["a", "b"]


@pytest.mark.parametrize(
    "changes",
    [
        {"resource_type": CLUSTER, "resource_name": "kafka-cluster"},
        {"resource_type": USER, "resource_name": "User:bob", "operation": 14},
        {"resource_pattern_type": PREFIXED, "permission_type": DENY},
        {"principal": "Group:a:b", "host": "10.0.0.1", "operation": 2},
    ],
)
def test_the_edges_of_what_is_valid(changes: dict[str, Any]) -> None:
    world = World().lead()
    assert create(world, acl(**changes))[0].error_code is NONE
    assert len(world.controller.committed_image.security.acls) == 1


def test_an_identical_acl_is_a_success_without_a_record() -> None:
    world = World().lead()
    create(world, acl())
    end = world.raft.log_end_offset
    assert create(world, acl(), acl())[0].error_code is NONE
    assert world.raft.log_end_offset == end

    results = create(world, acl(host="10.0.0.1"), acl(host="10.0.0.1"))
    assert [result.error_code for result in results] == [NONE, NONE]
    assert len(world.controller.committed_image.security.acls) == 2


@pytest.mark.parametrize("field", ["resource_name", "principal", "host"])
def test_a_difference_in_any_part_makes_another_acl(field: str) -> None:
    world = World().lead()
    create(world, acl(), acl(**{field: "User:other"}))
    assert len(world.controller.committed_image.security.acls) == 2


def test_kafkas_create_and_delete() -> None:
    world = World().lead()
    topics = acl(resource_type=TOPIC, principal="User:foo")
    by_prefix = acl(resource_name="user-", resource_pattern_type=PREFIXED)
    other = acl(resource_name="log-streams", principal="User:bar", permission_type=DENY)
    bad = acl(resource_pattern_type=0)
    codes = [result.error_code for result in create(world, topics, by_prefix, other, bad)]
    assert codes == [NONE, NONE, NONE, INVALID]

    results = delete(
        world,
        acl_filter(pattern_type_filter=LITERAL),
        acl_filter(resource_type_filter=0, pattern_type_filter=3),
    )
    assert [result.resource_name for result in results[0].matching_acls] == ["*", "log-streams"]
    assert (results[1].error_code, results[1].error_message) == (INVALID, "Unknown patternFilter.")
    assert names(world) == ["user-"]


def test_an_acl_that_two_filters_match_is_removed_once() -> None:
    world = World().lead()
    create(world, acl(resource_name="topic-1", principal="User:user", host="10.0.0.1", operation=2))
    start = world.raft.log_end_offset
    exact = acl_filter(
        resource_type_filter=TOPIC,
        resource_name_filter="topic-1",
        pattern_type_filter=LITERAL,
        principal_filter="User:user",
        host_filter="10.0.0.1",
        operation=2,
        permission_type=ALLOW,
    )
    results = delete(world, acl_filter(), exact)
    assert [len(result.matching_acls) for result in results] == [1, 1]
    assert kinds(world, start) == ["RemoveAccessControlEntryRecord"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resource_type_filter": 0}, "Unknown patternFilter."),
        ({"resource_type_filter": 8}, "Unknown patternFilter."),
        ({"pattern_type_filter": 0}, "Unknown patternFilter."),
        ({"pattern_type_filter": 5}, "Unknown patternFilter."),
        ({"operation": 0}, "Unknown entryFilter."),
        ({"operation": 15}, "Unknown entryFilter."),
        ({"permission_type": 0}, "Unknown entryFilter."),
        ({"permission_type": 4}, "Unknown entryFilter."),
    ],
)
def test_a_filter_with_unknown_parts_is_refused(changes: dict[str, Any], message: str) -> None:
    world = World().lead()
    create(world, acl())
    (result,) = delete(world, acl_filter(**changes))
    assert (result.error_code, result.error_message) == (INVALID, message)
    assert result.matching_acls == ()
    answer = describe(world, **changes)
    assert (answer.error_code, answer.error_message, answer.resources) == (INVALID, message, ())
    assert len(world.controller.committed_image.security.acls) == 1


PATTERNS = [("*", LITERAL), ("foo", LITERAL), ("foobar", LITERAL), ("foo", PREFIXED), ("bar", PREFIXED)]


@pytest.mark.parametrize(
    ("name", "pattern_type", "found"),
    [
        (None, ANY, PATTERNS),
        (None, MATCH, PATTERNS),
        (None, PREFIXED, [("foo", PREFIXED), ("bar", PREFIXED)]),
        ("foo", LITERAL, [("foo", LITERAL)]),
        ("foo", PREFIXED, [("foo", PREFIXED)]),
        ("foo", ANY, [("foo", LITERAL), ("foo", PREFIXED)]),
        ("foo", MATCH, [("*", LITERAL), ("foo", LITERAL), ("foo", PREFIXED)]),
        ("foobar", MATCH, [("*", LITERAL), ("foobar", LITERAL), ("foo", PREFIXED)]),
        ("*", LITERAL, [("*", LITERAL)]),
        ("none", MATCH, [("*", LITERAL)]),
        ("none", ANY, []),
    ],
)
def test_which_patterns_a_filter_finds(
    name: str | None, pattern_type: int, found: list[tuple[str, int]]
) -> None:
    world = World().lead()
    create(world, *(acl(resource_name=each, resource_pattern_type=kind) for each, kind in PATTERNS))
    resources = describe(world, resource_name_filter=name, pattern_type_filter=pattern_type).resources
    assert sorted((each.resource_name, each.pattern_type) for each in resources) == sorted(found)


@pytest.mark.parametrize(
    ("changes", "hosts"),
    [
        ({"principal_filter": "User:a"}, ["1", "2"]),
        ({"principal_filter": "User:*"}, []),
        ({"host_filter": "2"}, ["2"]),
        ({"operation": 3}, ["1", "3"]),
        ({"permission_type": DENY}, ["3"]),
        ({"resource_type_filter": 3}, ["3"]),
        ({"principal_filter": "User:a", "operation": 4}, ["2"]),
    ],
)
def test_which_entries_a_filter_finds(changes: dict[str, Any], hosts: list[str]) -> None:
    world = World().lead()
    create(
        world,
        acl(principal="User:a", host="1", operation=3),
        acl(principal="User:a", host="2", operation=4),
        acl(principal="User:b", host="3", operation=3, permission_type=DENY, resource_type=3),
    )
    resources = describe(world, **changes).resources
    assert [entry.host for each in resources for entry in each.acls] == hosts


def test_entries_of_one_pattern_are_described_together() -> None:
    world = World().lead()
    create(world, acl(host="1"), acl(resource_name="t"), acl(host="2"))
    resources = describe(world).resources
    assert [(each.resource_name, len(each.acls)) for each in resources] == [("*", 2), ("t", 1)]


def test_more_than_ten_thousand_are_refused_and_nothing_is_written() -> None:
    world = World().lead()
    end = world.raft.log_end_offset
    results = create(world, *(acl(resource_name=f"t{index}") for index in range(10_001)))
    assert {result.error_code for result in results} == {ErrorCode.policy_violation}
    assert len(results) == 10_001
    assert world.raft.log_end_offset == end

    for start in (0, 6_000):
        create(world, *(acl(resource_name=f"t{index}") for index in range(start, start + 6_000)))
    results = delete(world, acl_filter(), acl_filter(resource_name_filter="t1"))
    assert [result.error_code for result in results] == [ErrorCode.policy_violation] * 2
    assert len(world.controller.committed_image.security.acls) == 12_000


def test_ids_are_not_used_twice() -> None:
    world = World().lead()
    create(world, *(acl(resource_name=f"t{index}") for index in range(50)))
    records = [each for each in world.raft.records() if isinstance(each, AccessControlEntryRecord)]
    assert len({record.id for record in records}) == 50
    assert {record.id.version for record in records} == {4}


def test_uncommitted_acls_count_for_the_next_request_and_are_not_described() -> None:
    world = World().lead()
    world.commit()
    world.send(ApiKey.CREATE_ACLS, 3, creations=[acl()])
    end = world.raft.log_end_offset
    second = world.send(ApiKey.CREATE_ACLS, 3, creations=[acl()])
    assert (world.raft.log_end_offset, second) == (end, [])
    assert describe(world).resources == ()
    world.commit()
    assert second
    assert describe(world).resources


def test_a_standby_refuses_each_entry() -> None:
    world = World().lead()
    world.follow(1, 2)
    answer = world.ask(ApiKey.CREATE_ACLS, 3, creations=[acl(), acl(host="1")])
    assert [each.error_code for each in answer.results] == [ErrorCode.not_controller] * 2
    answer = world.ask(ApiKey.DELETE_ACLS, 3, filters=[acl_filter()])
    assert [each.error_code for each in answer.filter_results] == [ErrorCode.not_controller]
