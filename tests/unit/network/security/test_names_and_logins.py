"""Principals of certificates as Java prints them, and logins as JAAS has them."""

from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kquorum.network.security.distinguished_names import (
    parse_mapping_rules,
    principal_of_certificate,
    rfc_2253_name,
)
from kquorum.network.security.errors import UnnamedCertificate
from kquorum.network.security.jaas import JaasError, parse_jaas
from tests.support.certificates import now

CN, OU, ORG, C, ST, L = (
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.COUNTRY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.LOCALITY_NAME,
)
KEY = ec.generate_private_key(ec.SECP256R1())


def der(*rdns: tuple[tuple[Any, str], ...]) -> bytes:
    """A certificate whose subject has these parts."""
    subject = x509.Name(
        [x509.RelativeDistinguishedName([x509.NameAttribute(*each) for each in rdn]) for rdn in rdns]
    )
    issuer = x509.Name([x509.NameAttribute(CN, "issuer")])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).serial_number(1)
    builder = builder.public_key(KEY.public_key()).not_valid_before(now()).not_valid_after(now())
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


# What Java 21's X500Principal.getName() says of the same subjects.
@pytest.mark.parametrize(
    ("rdns", "name"),
    [
        ([((CN, "alice"),)], "CN=alice"),
        (
            [((C, "DE"),), ((ST, "Bayern"),), ((L, "München"),), ((ORG, "Acme"),), ((CN, "alice"),)],
            "CN=alice,O=Acme,L=München,ST=Bayern,C=DE",
        ),
        ([((ORG, 'A, "B" + C; <D> #E=F\\G'),)], 'O=A\\, \\"B\\" \\+ C\\; \\<D\\> \\#E\\=F\\\\G'),
        ([((CN, " alice "),)], "CN=\\ alice\\ "),
        ([((CN, "a  b"),)], "CN=a  b"),
        ([((CN, "bob"), (OU, "ops")), ((ORG, "#x"),)], "O=\\#x,CN=bob+OU=ops"),
        (
            [((NameOID.DOMAIN_COMPONENT, "org"),), ((NameOID.USER_ID, "u1"),)],
            "UID=u1,DC=org",
        ),
        ([((NameOID.EMAIL_ADDRESS, "a@b.c"),)], "1.2.840.113549.1.9.1=#1605614062" + "2e63"),
        (
            [((NameOID.SERIAL_NUMBER, "42"),), ((NameOID.TITLE, "Dr"),)],
            "2.5.4.12=#0c024472,2.5.4.5=#13023432",
        ),
        ([((NameOID.SURNAME, "x" * 200),)], "2.5.4.4=#0c81c8" + "78" * 200),
        ([], ""),
    ],
)
def test_names_are_javas(rdns: list[tuple[tuple[Any, str], ...]], name: str) -> None:
    assert rfc_2253_name(der(*rdns)) == name


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("", "User:CN=Alice,OU=ops"),
        ("DEFAULT", "User:CN=Alice,OU=ops"),
        ("RULE:^CN=(.*?),OU=ops$/$1/", "User:Alice"),
        ("RULE:^CN=(.*?),OU=ops$/$1/L", "User:alice"),
        ("RULE:^CN=(.*?),OU=(.*)$/$1@$2/U", "User:ALICE@OPS"),
        ("RULE:^UID=.*$/x/,RULE:^CN=([^,]*).*$/$1/L, DEFAULT", "User:alice"),
        ("RULE:^UID=.*$/x/,DEFAULT", "User:CN=Alice,OU=ops"),
    ],
)
def test_mapping_rules(rules: str, principal: str) -> None:
    to_principal = principal_of_certificate(parse_mapping_rules(rules))
    assert to_principal(der(((OU, "ops"),), ((CN, "Alice"),))) == principal


def test_a_certificate_that_no_rule_fits_has_no_principal() -> None:
    """Kafka's SslPrincipalMapper raises NoMatchingRule, and the connection is closed."""
    with pytest.raises(
        UnnamedCertificate, match=r"no rule of ssl\.principal\.mapping\.rules fits .*CN=Alice"
    ):
        principal_of_certificate(parse_mapping_rules("RULE:^UID=.*$/x/"))(der(((CN, "Alice"),)))


def test_without_a_certificate_the_principal_is_anonymous() -> None:
    assert principal_of_certificate(parse_mapping_rules("DEFAULT"))(None) == "User:ANONYMOUS"


@pytest.mark.parametrize(
    "rules",
    [
        "RULE",
        "RULE:a",
        "RULE:(/x/",
        "default",
        "DEFAULT RULE:a/b/",
        "RULE:a/b/X",
        pytest.param(f"RULE:{'(' * 5_000}a{')' * 5_000}/x/", id="nested"),
        pytest.param(f"RULE:a{{{10**30}}}/x/", id="too many"),
        pytest.param(f"RULE:{'(' * 5_000}/x/", id="open"),
        pytest.param("x" * 100_000, id="long"),
        "RULE:(a)/$2/",
    ],
)
def test_rules_that_are_none(rules: str) -> None:
    with pytest.raises(ValueError, match=r"neither DEFAULT|cannot be used") as caught:
        parse_mapping_rules(rules)
    assert len(str(caught.value)) < 1_000


# Logins


def test_a_login_as_kafka_writes_it() -> None:
    entry = parse_jaas(
        'org.apache.kafka.common.security.plain.PlainLoginModule required\n username="admin" '
        'password="ad\\"min=secret" user_admin="a;b" user_alice=plain ;\n'
    )
    assert entry.module == "PlainLoginModule"
    assert (entry.username, entry.password) == ("admin", 'ad"min=secret')
    assert entry.users == {"admin": "a;b", "alice": "plain"}


def test_a_login_with_a_token() -> None:
    entry = parse_jaas('x.ScramLoginModule required username="id" password="hmac" tokenauth="true";')
    assert entry.is_token


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PlainLoginModule",
        'PlainLoginModule required password="topsecret"',
        'PlainLoginModule username="topsecret";',
        'PlainLoginModule required password "topsecret";',
        'PlainLoginModule required password="topsecret;',
        "PlainLoginModule required password=;",
    ],
)
def test_a_login_that_is_none_is_never_quoted(text: str) -> None:
    with pytest.raises(JaasError) as caught:
        parse_jaas(text)
    assert "topsecret" not in str(caught.value)


def test_a_login_is_not_shown() -> None:
    assert "secret" not in repr(parse_jaas('M required password="secret";'))
