"""The keys of the authorizer: what they mean, and what is refused with a way out."""

from pathlib import Path

import pytest

from kquorum.metadata.authorizer.authorizer import CLASS_NAME
from kquorum.node.authorization import LoadWatch, gate_of
from kquorum.node.config.errors import ConfigError
from kquorum.node.config.load import load_config
from kquorum.node.config.model import NodeConfig

NODE = """
process.roles=broker
node.id=11
listeners=CLIENTS://127.0.0.1:9092
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:9093
log.dirs=/data
"""
SECURE = "listener.security.protocol.map=CLIENTS:SASL_SSL,CONTROLLER:SSL\n"


def config(tmp_path: Path, lines: str) -> NodeConfig:
    path = tmp_path / "node.properties"
    path.write_text(NODE + lines)
    return load_config(path).nodes[0]


def problem(tmp_path: Path, lines: str) -> str:
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, lines)
    return str(caught.value)


def test_without_the_class_no_authorizer_is_asked(tmp_path: Path) -> None:
    node = config(tmp_path, SECURE + "super.users=User:admin\n")
    assert node.authorizer is None
    assert gate_of(node, lambda: 0).is_open


def test_the_standard_authorizer_is_switched_on(tmp_path: Path) -> None:
    lines = SECURE + f"authorizer.class.name={CLASS_NAME}\nsuper.users=User:CN=node,OU=ops;User:admin\n"
    node = config(tmp_path, lines)
    assert node.authorizer is not None
    assert node.authorizer.super_users == {"User:CN=node,OU=ops", "User:admin"}
    assert not node.authorizer.allow_everyone_if_no_acl_found
    assert not gate_of(node, lambda: 0).is_open
    # As DescribeConfigs tells it.
    assert node.as_kafka_keys()["super.users"] == "User:CN=node,OU=ops;User:admin"
    node = config(tmp_path, lines + "allow.everyone.if.no.acl.found=true\n")
    assert node.authorizer is not None
    assert node.authorizer.allow_everyone_if_no_acl_found


def test_toml_has_super_users_as_a_list(tmp_path: Path) -> None:
    path = tmp_path / "quorum.toml"
    path.write_text(f"""
[defaults]
"authorizer.class.name" = "{CLASS_NAME}"
"super.users" = ["User:CN=node,OU=ops", "User:ANONYMOUS"]
"controller.listener.names" = "CONTROLLER"
[[nodes]]
"node.id" = 1
"process.roles" = "controller"
"listeners" = "CONTROLLER://127.0.0.1:9093"
"log.dirs" = "x"
""")
    [node] = load_config(path).nodes
    assert node.authorizer is not None
    assert node.authorizer.super_users == {"User:CN=node,OU=ops", "User:ANONYMOUS"}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("authorizer.class.name=com.example.Mine\n", "cannot be run here; there is " + CLASS_NAME),
        ("authorizer.class.name=kafka.security.authorizer.AclAuthorizer\n", "needs ZooKeeper"),
        (f"authorizer.class.name={CLASS_NAME}\nsuper.users=admin\n", "'admin' is not a principal"),
        ("kquorum.voter.principals=CN=node-1\n", "'CN=node-1' is not a principal"),
        ("allow.everyone.if.no.acl.found=maybe\n", "neither true nor false"),
    ],
)
def test_what_is_wrong_is_said_with_the_way_out(tmp_path: Path, lines: str, words: str) -> None:
    assert words in problem(tmp_path, SECURE + lines)


def test_controllers_that_could_not_talk_to_each_other_are_not_started(tmp_path: Path) -> None:
    lines = f"authorizer.class.name={CLASS_NAME}\nsuper.users=User:admin\n"
    told = problem(tmp_path, lines)
    assert "on the listener CONTROLLER (PLAINTEXT) all are User:ANONYMOUS" in told
    assert config(tmp_path, lines.rstrip() + ";User:ANONYMOUS\n").authorizer is not None


def test_a_controller_has_loaded_once_it_is_where_the_quorum_was() -> None:
    heard, high_watermark, applied = False, 7, 6
    watch = LoadWatch(
        has_heard=lambda: heard, high_watermark=lambda: high_watermark, applied_offset=lambda: applied
    )
    assert not watch()  # it may be behind the others, whatever it has
    heard, high_watermark = True, 20
    assert not watch()
    high_watermark, applied = 30, 19
    assert watch()
