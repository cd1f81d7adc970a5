"""The response to an unauthenticated client must not show that no user has this name."""

import re
from collections import Counter
from collections.abc import Iterable

import pytest
from immutables import Map

from kquorum.network.security.scram import MIN_ITERATIONS
from kquorum.network.security.unknown_user_credentials import (
    AS_KAFKA,
    form_for,
    new_salt,
    unknown_user_credentials,
)
from kquorum.wire.salt_forms import FormCounts, SaltForm, form_of

MECHANISM, PEPPER = "SCRAM-SHA-256", b"pepper"
NAMES = [f"user-{number}" for number in range(500)]


def salt(name: str, form: SaltForm = AS_KAFKA, pepper: bytes = PEPPER) -> bytes:
    return unknown_user_credentials(MECHANISM, name, form, pepper).salt


def test_our_salts_are_of_the_form_of_kafkas_tools() -> None:
    """ScramFormatter.secureRandomBytes: 130 random bits in base 36."""
    salts = [new_salt() for _ in NAMES]
    assert len(set(salts)) == len(NAMES)
    assert all(re.fullmatch(rb"[1-9a-z][0-9a-z]{21,25}", each) for each in salts)
    assert {form_of(each, 4096) for each in salts} == {AS_KAFKA}
    # 36 ** 25 is 0.6 of 2 ** 130.
    assert 0.25 < sum(len(each) == 26 for each in salts) / len(salts) < 0.55


def test_an_unknown_users_salt_has_the_same_form() -> None:
    salts = [salt(name) for name in NAMES]
    assert len(set(salts)) == len(NAMES)
    assert {form_of(each, 4096) for each in salts} == {AS_KAFKA}
    assert 0.25 < sum(len(each) == 26 for each in salts) / len(salts) < 0.55
    assert salts == [salt(name) for name in NAMES]
    assert not set(salts) & {salt(name, pepper=b"another") for name in NAMES}


@pytest.mark.parametrize("size", [1, 16, 24, 32, 64, 200])
def test_salts_of_any_bytes_have_their_length(size: int) -> None:
    form = form_of(bytes(range(200))[-size:], 8192)
    assert form == SaltForm(size, 8192)
    keys = unknown_user_credentials(MECHANISM, "unknown", form, PEPPER)
    assert (len(keys.salt), keys.iterations) == (size, 8192)
    assert keys.stored_key == keys.server_key == bytes(32)


def counts_of(forms: Iterable[SaltForm]) -> FormCounts:
    return Map(Counter(forms))


def forms_for(counts: FormCounts) -> list[SaltForm]:
    return [form_for(name, counts, PEPPER) for name in NAMES]


def test_unknown_users_have_the_same_forms_as_users() -> None:
    strange = SaltForm(64, 10_000)
    users = [strange if number % 4 == 0 else AS_KAFKA for number in range(400)]
    forms = forms_for(counts_of(users))
    share = sum(form == strange for form in forms) / len(NAMES)
    assert 0.15 < share < 0.35
    assert forms == forms_for(counts_of(reversed(users)))
    assert forms != [form_for(name, counts_of(users), b"another") for name in NAMES]


def test_another_user_changes_little() -> None:
    counts = counts_of(SaltForm(number + 1) for number in range(100))
    before = forms_for(counts)
    after = forms_for(counts.set(AS_KAFKA, 1))
    changed = [form for form, was in zip(after, before, strict=True) if form != was]
    assert len(changed) < len(NAMES) / 10
    assert set(changed) <= {AS_KAFKA}
    assert forms_for(counts.set(AS_KAFKA, 1).delete(AS_KAFKA)) == before


def test_one_more_user_of_a_form_takes_names_to_that_form_only() -> None:
    counts = counts_of([AS_KAFKA] * 50 + [SaltForm(16)] * 50)
    before, after = forms_for(counts), forms_for(counts.set(AS_KAFKA, 60))
    changed = {(was, form) for was, form in zip(before, after, strict=True) if form != was}
    assert changed == {(SaltForm(16), AS_KAFKA)}


def test_a_user_with_another_password_may_look_otherwise() -> None:
    assert form_for("any-user", counts_of([SaltForm(32, 8192)]), PEPPER) == SaltForm(32, 8192)


def test_without_users_there_is_nothing_to_hide() -> None:
    assert form_for("any-user", Map(), PEPPER) == SaltForm(None, MIN_ITERATIONS)
