"""What a config says of TLS and SASL, and what is refused at the start with key, file and line."""

import json
from pathlib import Path

import pytest

from kquorum.network.security.names import PROTOCOLS
from kquorum.network.security.plain import encode_plain
from kquorum.network.security.reloading import ReloadingContext
from kquorum.node.config.errors import ConfigError
from kquorum.node.config.exposure import exposure_problems, is_loopback
from kquorum.node.config.load import load_config
from kquorum.node.config.model import NodeConfig
from kquorum.node.security import check_security, controller_client, grpc_security, listener_security
from kquorum.node.servers import advertised
from kquorum.wire.messages.broker_registration import Listener
from kquorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kquorum.wire.messages.sasl_handshake import SaslHandshakeRequest
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.protocol.headers import RequestHeader
from tests.support import config_files
from tests.support.certificates import HOSTS, authority, cluster_certificates, issued, write

SECRET = "never-to-be-shown"
MAP = 'listener.security.protocol.map = "CONTROLLER:SSL,PLAINTEXT:SASL_SSL"'
JAAS = f'PlainLoginModule required username=\\"n\\" password=\\"{SECRET}\\" user_n=\\"{SECRET}\\";'


def config(folder: Path, *lines: str, text: str = config_files.SMALL) -> Path:
    """The small config with more lines in [defaults]."""
    begins = 'controller.listener.names = "CONTROLLER"\n'
    return config_files.write(folder, text.replace(begins, begins + "\n".join(lines) + "\n"))


def node(path: Path, node_id: int) -> NodeConfig:
    return load_config(path).node(node_id)


def refused(path: Path, node_id: int) -> str:
    cluster = load_config(path)
    with pytest.raises(ConfigError) as caught:
        check_security(cluster, cluster.node(node_id))
    assert SECRET not in str(caught.value)
    return str(caught.value)


def secured(folder: Path, *lines: str) -> Path:
    cluster_certificates(folder / "certs", (1, 11))
    return config(
        folder,
        MAP,
        f'ssl.keystore.location = "{folder}/certs/node-{{node.id}}.pem"',
        f'ssl.truststore.location = "{folder}/certs/ca.pem"',
        'listener.name.controller.ssl.client.auth = "required"',
        'listener.name.plaintext.sasl.enabled.mechanisms = "PLAIN,SCRAM-SHA-512"',
        f'listener.name.plaintext.plain.sasl.jaas.config = "{JAAS}"',
        *lines,
    )


def test_a_sound_config_passes(tmp_path: Path) -> None:
    cluster = load_config(secured(tmp_path))
    for each in cluster.nodes:
        check_security(cluster, each)
    broker = cluster.node(11)
    assert listener_security(broker, "PLAINTEXT").protocol == PROTOCOLS["SASL_SSL"]
    assert controller_client(broker).protocol == PROTOCOLS["SSL"]
    [listener] = advertised(broker, broker.advertised_listeners, Listener)
    assert listener.security_protocol == PROTOCOLS["SASL_SSL"]


def test_without_a_map_names_of_protocols_speak_for_themselves(tmp_path: Path) -> None:
    broker = node(config(tmp_path), 11)
    assert [broker.protocol_of(name) for name in ("PLAINTEXT", "SSL", "SASL_SSL", "CONTROLLER")] == [
        "PLAINTEXT",
        "SSL",
        "SASL_SSL",
        "PLAINTEXT",
    ]


def test_what_is_said_of_one_listener_goes_before_what_is_said_of_all(tmp_path: Path) -> None:
    path = config(
        tmp_path, MAP, 'ssl.client.auth = "required"', 'listener.name.controller.ssl.client.auth = "none"'
    )
    assert node(path, 1).security_of("CONTROLLER")["ssl.client.auth"] == "none"
    # With SASL, certificates are asked for only where the listener itself says so (KIP-684).
    assert "ssl.client.auth" not in node(path, 11).security_of("PLAINTEXT")


@pytest.mark.parametrize(
    "key",
    [
        "listener.name.CONTROLLER.ssl.client.auth",
        "listener.name.Controller.ssl.client.auth",
        "listener.name.PLAINTEXT.max.connections",
        "listener.name.plaintext.PLAIN.sasl.jaas.config",
    ],
)
def test_a_key_of_a_listener_is_in_lower_case_or_refused(tmp_path: Path, key: str) -> None:
    """Kafka passes it over, and who meant to ask for certificates asks for none."""
    path = config(tmp_path, MAP, f'"{key}" = "1"')
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    problem = caught.value.problems[0].message
    assert f"{key} must be written in lower case" in problem
    assert problem.endswith(key.lower())


def test_how_long_a_login_counts_may_be_said_of_one_mechanism(tmp_path: Path) -> None:
    path = secured(
        tmp_path,
        '"connections.max.reauth.ms" = 1000',
        '"listener.name.plaintext.plain.connections.max.reauth.ms" = 2000',
    )
    assert lifetime_ms(node(path, 11)) == 2000
    path = secured(tmp_path, '"listener.name.plaintext.connections.max.reauth.ms" = 3000')
    assert lifetime_ms(node(path, 11)) == 3000
    path = secured(tmp_path, '"listener.name.plaintext.scram-sha-512.connections.max.reauth.ms" = 4000')
    assert lifetime_ms(node(path, 11)) == 0


def lifetime_ms(broker: NodeConfig) -> int:
    """Of a login with PLAIN."""
    security = listener_security(broker, "PLAINTEXT")
    assert security.new_session is not None
    session = security.new_session()
    session.handle(RequestHeader(ApiKey.SASL_HANDSHAKE, 1, 1, None), SaslHandshakeRequest(mechanism="PLAIN"))
    answer = session.handle(
        RequestHeader(ApiKey.SASL_AUTHENTICATE, 2, 2, None),
        SaslAuthenticateRequest(auth_bytes=encode_plain("n", SECRET)),
    )
    assert answer.principal == "User:n"
    return answer.session_lifetime_ms


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("listener.name.plaintext.plain.connections.max.reauth.ms", "soon"),
        ("listener.name.other.plain.connections.max.reauth.ms", "1"),
    ],
)
def test_for_a_mechanism_it_is_checked_as_for_all(tmp_path: Path, key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=r"must be a number|is for a listener OTHER;"):
        load_config(config(tmp_path, MAP, f'"{key}" = "{value}"'))


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    path = secured(tmp_path, f'ssl.key.password = "{SECRET}"', f'delegation.token.secret.key = "{SECRET}"')
    broker = node(path, 11)
    assert SECRET not in repr(broker)
    keys = broker.as_kafka_keys()
    keys.pop(
        "delegation.token.secret.key"
    )  # DescribeDelegationToken needs it; DescribeConfigs hides passwords
    assert SECRET not in json.dumps(keys)
    assert keys["ssl.truststore.location"].endswith("ca.pem")


def test_a_secret_of_the_wrong_kind_is_not_quoted(tmp_path: Path) -> None:
    path = config(tmp_path, "delegation.token.secret.key = 123456789")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert "123456789" not in str(caught.value)
    assert "delegation.token.secret.key" in str(caught.value)


# At the start


def test_the_key_of_another_certificate_has_file_and_line(tmp_path: Path) -> None:
    path = secured(tmp_path)
    ours, other = issued("node-1", *HOSTS), issued("other", *HOSTS)
    at = other.index("-----BEGIN CERTIFICATE")
    write(tmp_path / "certs" / "node-1.pem", ours[: ours.index("-----BEGIN CERTIFICATE")] + other[at:])
    told = refused(path, 1)
    assert f"{path}:7: node 1, listener CONTROLLER (SSL): ssl.keystore.location: {tmp_path}" in told
    assert "the private key is not that of the certificate CN=other" in told


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((MAP,), "ssl.keystore.location: a listener with TLS needs a certificate and its private key"),
        (
            ('listener.security.protocol.map = "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT"',),
            "sasl.enabled.mechanisms: it must say how clients may log in: there are PLAIN, SCRAM-SHA-256",
        ),
        (
            (
                'listener.security.protocol.map = "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT"',
                'sasl.enabled.mechanisms = "GSSAPI"',
            ),
            "GSSAPI cannot be used",
        ),
        (
            (
                'listener.security.protocol.map = "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT"',
                'sasl.enabled.mechanisms = "PLAIN"',
            ),
            "plain.sasl.jaas.config: PLAIN needs a login",
        ),
        (
            (
                'listener.security.protocol.map = "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT"',
                'sasl.enabled.mechanisms = "SCRAM-SHA-512"',
                'sasl.mechanism.controller.protocol = "SCRAM-SHA-512"',
            ),
            "cannot be used among controllers",
        ),
        (('ssl.principal.mapping.rules = "nonsense"',), "neither DEFAULT nor RULE"),
    ],
)
def test_what_a_broker_would_stumble_over_is_said_before_it_starts(
    tmp_path: Path, lines: tuple[str, ...], said: str
) -> None:
    told = refused(config(tmp_path, *lines), 11)
    assert said in told
    assert "quorum.toml:" in told


def test_controllers_with_passwords(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        'listener.security.protocol.map = "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT"',
        'sasl.mechanism.controller.protocol = "PLAIN"',
        'listener.name.controller.sasl.enabled.mechanisms = "PLAIN"',
        f'listener.name.controller.plain.sasl.jaas.config = "{JAAS}"',
    )
    cluster = load_config(path)
    check_security(cluster, cluster.node(1))
    client = controller_client(cluster.node(11))
    assert (client.mechanism, client.username, client.password) == ("PLAIN", "n", SECRET)


def test_grpc_with_tls_needs_the_same(tmp_path: Path) -> None:
    path = config(tmp_path, 'kquorum.grpc.security = "ssl"', 'kquorum.grpc.listener = "127.0.0.1:0"')
    told = refused(path, 11)
    assert "kquorum.grpc.listener: ssl.keystore.location: a listener with TLS needs" in told


GRPC = ('kquorum.grpc.security = "ssl"', 'kquorum.grpc.listener = "127.0.0.1:0"')


@pytest.mark.parametrize("enabled", ["TLSv1.2", "TLSv1.3", "TLSv1.2,TLSv1.3"])
def test_grpc_offers_the_versions_of_tls_that_are_enabled(tmp_path: Path, enabled: str) -> None:
    cluster = load_config(secured(tmp_path, *GRPC, f'ssl.enabled.protocols = "{enabled}"'))
    check_security(cluster, cluster.node(11))
    context = grpc_security(cluster.node(11)).ssl_context
    assert isinstance(context, ReloadingContext)
    offered = (context.material.current.minimum_version.name, context.material.current.maximum_version.name)
    names = enabled.replace(".", "_").split(",")
    assert offered == (names[0], names[-1])


def test_an_unknown_version_is_named_for_grpc_too(tmp_path: Path) -> None:
    told = refused(secured(tmp_path, *GRPC, 'listener.name.grpc.ssl.enabled.protocols = "TLSv1.1"'), 11)
    assert "TLSv1.1 cannot be enabled: there are TLSv1.2 and TLSv1.3" in told


# Listeners that every client could use


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "LOCALHOST.", "::1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "0.0.0.0", "::", "10.0.0.1", "192.168.1.1", "broker.example.org", "fe80::1%eth0"]
)
def test_anywhere_else(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "place", ["0.0.0.0:9092", ":9092", "10.1.2.3:9092", "[::]:9092", "host.example.org:9092"]
)
def test_plaintext_for_the_world_is_refused(tmp_path: Path, place: str) -> None:
    text = config_files.SMALL.replace("127.0.0.1:9092", place)
    text += 'advertised.listeners = "PLAINTEXT://broker.example.org:9092"\n'
    told = refused(config(tmp_path, text=text), 11)
    assert "listener PLAINTEXT is PLAINTEXT on" in told
    assert "kquorum.allow.unsecured.listeners=true" in told
    assert "quorum.toml:17:" in told
    allowed = config(tmp_path, "kquorum.allow.unsecured.listeners = true", text=text)
    assert list(exposure_problems(node(allowed, 11))) == []


def test_tls_for_the_world_is_fine(tmp_path: Path) -> None:
    path = secured(tmp_path)
    path.write_text(path.read_text().replace("127.0.0.1:9092", "0.0.0.0:9092"))
    path.write_text(path.read_text() + 'advertised.listeners = "PLAINTEXT://127.0.0.1:9092"\n')
    cluster = load_config(path)
    check_security(cluster, cluster.node(11))


@pytest.mark.parametrize("key", ["kquorum.grpc.listener", "kquorum.metrics.listener"])
def test_the_other_listeners_too(tmp_path: Path, key: str) -> None:
    told = refused(config(tmp_path, f'{key} = "0.0.0.0:0"'), 11)
    assert key in told
    assert "kquorum.allow.unsecured.listeners=true" in told


def test_an_authority_is_not_mixed_up(tmp_path: Path) -> None:
    """What the tests above rely on."""
    assert authority().pem != authority("another authority").pem
