"""ACLs, SCRAM credentials and delegation tokens."""

from dataclasses import InitVar, dataclass, field
from typing import NamedTuple
from uuid import UUID

from immutables import Map

from kquorum.metadata.image.errors import CannotReplayError
from kquorum.wire.metadata_records.security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kquorum.wire.salt_forms import FormCounts, SaltForm, form_of
from kquorum.wire.uuids import uuid_to_text


class Binding(NamedTuple):
    """What makes two ACLs the same one; the order is that of the record's fields after the id."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlEntry:
    """The codes are those of AccessControlEntryRecord."""

    id: UUID
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @property
    def binding(self) -> Binding:
        return Binding(
            self.resource_type,
            self.resource_name,
            self.pattern_type,
            self.principal,
            self.host,
            self.operation,
            self.permission_type,
        )


class ScramUser(NamedTuple):
    """`mechanism`: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    mechanism: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiration_timestamp_ms: int


# By mechanism.
ScramForms = Map[int, FormCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityImage:
    """`scram_forms` counts the forms of the users' salts, from which unknown users get theirs
    (`network.security.unknown_user_credentials`). It follows from `scram`; deltas update it record by record, so that a
    login need not read all users.
    """

    acls: Map[UUID, AccessControlEntry] = field(default_factory=Map)
    scram: Map[ScramUser, ScramCredential] = field(default_factory=Map)
    delegation_tokens: Map[str, DelegationToken] = field(default_factory=Map)
    scram_forms: ScramForms = field(init=False, compare=False, repr=False)
    counted_forms: InitVar[ScramForms | None] = None

    def __post_init__(self, counted_forms: ScramForms | None) -> None:
        if counted_forms is None:
            counted_forms = Map()
            for user, credential in self.scram.items():
                counted_forms = _counted(counted_forms, user, credential, 1)
        object.__setattr__(self, "scram_forms", counted_forms)

    @property
    def is_empty(self) -> bool:
        return not (self.acls or self.scram or self.delegation_tokens)


def _counted(forms: ScramForms, user: ScramUser, credential: ScramCredential, change: int) -> ScramForms:
    form: SaltForm = form_of(credential.salt, credential.iterations)
    counts = forms.get(user.mechanism, Map())
    count = counts.get(form, 0) + change
    counts = counts.set(form, count) if count else counts.delete(form)
    return forms.set(user.mechanism, counts)


class SecurityDelta:
    """`changed_*` hold the keys of what records put, replaced or removed."""

    def __init__(self, image: SecurityImage) -> None:
        self.changed_acls: set[UUID] = set()
        self.changed_scram: set[ScramUser] = set()
        self.changed_tokens: set[str] = set()
        self._acls = image.acls
        self._scram = image.scram
        self._scram_forms = image.scram_forms
        self._delegation_tokens = image.delegation_tokens

    def apply(self) -> SecurityImage:
        return SecurityImage(
            acls=self._acls,
            scram=self._scram,
            delegation_tokens=self._delegation_tokens,
            counted_forms=self._scram_forms,
        )

    def replay_access_control_entry(self, record: AccessControlEntryRecord) -> None:
        if record.id in self._acls:
            raise CannotReplayError(f"there is an ACL with id {uuid_to_text(record.id)} already")
        entry = AccessControlEntry(
            id=record.id,
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            pattern_type=record.pattern_type,
            principal=record.principal,
            host=record.host,
            operation=record.operation,
            permission_type=record.permission_type,
        )
        self._acls = self._acls.set(record.id, entry)
        self.changed_acls.add(record.id)

    def replay_remove_access_control_entry(self, record: RemoveAccessControlEntryRecord) -> None:
        if record.id not in self._acls:
            raise CannotReplayError(f"there is no ACL with id {uuid_to_text(record.id)}")
        self._acls = self._acls.delete(record.id)
        self.changed_acls.add(record.id)

    def replay_user_scram_credential(self, record: UserScramCredentialRecord) -> None:
        credential = ScramCredential(
            salt=record.salt,
            stored_key=record.stored_key,
            server_key=record.server_key,
            iterations=record.iterations,
        )
        user = ScramUser(record.mechanism, record.name)
        before = self._scram.get(user)
        if before is not None:
            self._scram_forms = _counted(self._scram_forms, user, before, -1)
        self._scram_forms = _counted(self._scram_forms, user, credential, 1)
        self._scram = self._scram.set(user, credential)
        self.changed_scram.add(user)

    def replay_remove_user_scram_credential(self, record: RemoveUserScramCredentialRecord) -> None:
        user = ScramUser(record.mechanism, record.name)
        before = self._scram.get(user)
        if before is None:
            raise CannotReplayError(
                f"user '{record.name}' has no credential for mechanism {record.mechanism}"
            )
        self._scram_forms = _counted(self._scram_forms, user, before, -1)
        self._scram = self._scram.delete(user)
        self.changed_scram.add(user)

    def replay_delegation_token(self, record: DelegationTokenRecord) -> None:
        token = DelegationToken(
            token_id=record.token_id,
            owner=record.owner,
            requester=record.requester,
            renewers=record.renewers,
            issue_timestamp_ms=record.issue_timestamp,
            max_timestamp_ms=record.max_timestamp,
            expiration_timestamp_ms=record.expiration_timestamp,
        )
        self._delegation_tokens = self._delegation_tokens.set(record.token_id, token)
        self.changed_tokens.add(record.token_id)

    def replay_remove_delegation_token(self, record: RemoveDelegationTokenRecord) -> None:
        if record.token_id in self._delegation_tokens:
            self._delegation_tokens = self._delegation_tokens.delete(record.token_id)
            self.changed_tokens.add(record.token_id)
