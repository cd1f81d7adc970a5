"""Records as JSON, and what is held back of them."""

import json
from uuid import UUID

import pytest

from kquorum.wire.control_records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    VotersRecord,
)
from kquorum.wire.metadata_records.cluster import BrokerEndpoint, RegisterBrokerRecord
from kquorum.wire.metadata_records.configs import ClientQuotaRecord, ConfigRecord, EntityData
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.security import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    UserScramCredentialRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.record_json import (
    REDACTED,
    is_sensitive_config,
    may_hold_secrets,
    record_to_json,
    type_name,
)

SCRAM = UserScramCredentialRecord(
    name="alice", mechanism=1, salt=b"\x00\xff", stored_key=b"sk", server_key=b"vk", iterations=4096
)


def test_nested_structs_uuids_and_nulls_become_plain_values() -> None:
    record = RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=UUID(int=1),
        broker_epoch=7,
        end_points=(BrokerEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0),),
        log_dirs=(UUID(int=0),),
    )
    fields = record_to_json(record)
    assert fields["incarnation_id"] == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert fields["end_points"] == [{"name": "PLAINTEXT", "host": "h", "port": 9092, "security_protocol": 0}]
    assert fields["log_dirs"] == ["AAAAAAAAAAAAAAAAAAAAAA"]
    assert fields["rack"] is None
    assert "unknown_tagged_fields" not in fields
    assert json.loads(json.dumps(fields)) == fields


def test_a_null_list_and_an_empty_one_stay_apart() -> None:
    fields = record_to_json(PartitionChangeRecord(topic_id=UUID(int=1), isr=(), replicas=None))
    assert (fields["isr"], fields["replicas"]) == ([], None)


def test_unknown_tagged_fields_are_shown_in_base64() -> None:
    fields = record_to_json(NoOpRecord(unknown_tagged_fields=((7000, b"\x01\x02"),)))
    assert fields == {"unknown_tagged_fields": [{"tag": 7000, "data": "AQI="}]}


def test_numbers_that_json_lacks_become_text() -> None:
    quota = ClientQuotaRecord(
        entity=(EntityData(entity_type="user", entity_name=None),),
        key="rate",
        value=float("nan"),
        remove=False,
    )
    fields = record_to_json(quota)
    assert fields["value"] == "nan"
    assert fields["entity"] == [{"entity_type": "user", "entity_name": None}]
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields


def test_scram_credentials_are_held_back_unless_asked_for() -> None:
    fields = record_to_json(SCRAM)
    assert (fields["name"], fields["iterations"]) == ("alice", 4096)
    assert [fields[name] for name in ("salt", "stored_key", "server_key")] == [REDACTED] * 3
    assert record_to_json(SCRAM, show_secrets=True)["salt"] == "AP8="


def test_a_delegation_token_keeps_a_digest_by_which_its_records_match() -> None:
    made = DelegationTokenRecord(
        owner="User:a",
        requester="User:a",
        renewers=(),
        issue_timestamp=1,
        max_timestamp=2,
        expiration_timestamp=2,
        token_id="t0ken",
    )
    shown = record_to_json(made)["token_id"]
    assert "t0ken" not in str(shown)
    assert record_to_json(RemoveDelegationTokenRecord(token_id="t0ken"))["token_id"] == shown
    assert record_to_json(RemoveDelegationTokenRecord(token_id="other"))["token_id"] != shown


def test_a_sensitive_config_hides_its_value_but_not_that_it_was_deleted() -> None:
    def config(name: str, value: str | None) -> ConfigRecord:
        return ConfigRecord(resource_type=4, resource_name="", name=name, value=value)

    assert record_to_json(config("ssl.key.password", "pw"))["value"] == REDACTED
    assert record_to_json(config("ssl.key.password", "pw"), show_secrets=True)["value"] == "pw"
    assert record_to_json(config("ssl.key.password", None))["value"] is None
    assert record_to_json(config("retention.ms", "5"))["value"] == "5"
    tagged = ConfigRecord(
        resource_type=4,
        resource_name="",
        name="ssl.key.password",
        value="pw",
        unknown_tagged_fields=((9, b"pw"),),
    )
    assert record_to_json(tagged)["unknown_tagged_fields"] == REDACTED


@pytest.mark.parametrize(
    "name",
    [
        "ssl.keystore.password",
        "listener.name.external.ssl.keystore.key",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
        "ssl.truststore.certificates",
        "password.encoder.secret",
        "delegation.token.secret.key",
        "rsm.config.storage.s3.secretAccessKey",
        "storage.azure.account_key",
        "plugin.API-KEY",
        "github.token",
        "schema.registry.basic.auth.user.info",
        "confluent.license",
        "plugin.session.key",
        "storage.encryption.key",
        "http.bearer.auth.value",
        "sasl.client.assertion",
    ],
)
def test_configs_of_type_password_are_sensitive(name: str) -> None:
    assert is_sensitive_config(name)


@pytest.mark.parametrize(
    "name",
    [
        "retention.ms",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "password.encoder.iterations",
        "delegation.token.max.lifetime.ms",
        "delegation.token.expiry.time.ms",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.enabled.mechanisms",
        "message.max.bytes",
        "key.serializer",
        "compression.type",
        "log.cleaner.dedupe.buffer.size",
    ],
)
def test_other_configs_are_shown(name: str) -> None:
    assert not is_sensitive_config(name)


def test_control_records_are_named_as_kafkas_tools_name_them() -> None:
    voter = Voter(
        voter_id=1,
        voter_directory_id=UUID(int=1),
        k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    )
    records = (
        LeaderChangeMessage(leader_id=1),
        SnapshotHeaderRecord(last_contained_log_timestamp=5),
        SnapshotFooterRecord(),
        KRaftVersionRecord(k_raft_version=1),
        VotersRecord(voters=(voter,)),
        NoOpRecord(),
    )
    assert [type_name(record) for record in records] == [
        "LeaderChange",
        "SnapshotHeader",
        "SnapshotFooter",
        "KRaftVersion",
        "KRaftVoters",
        "NoOpRecord",
    ]
    assert record_to_json(records[4])["voters"] == [
        {
            "voter_id": 1,
            "voter_directory_id": "AAAAAAAAAAAAAAAAAAAAAQ",
            "endpoints": [],
            "k_raft_version_feature": {"min_supported_version": 0, "max_supported_version": 1},
        }
    ]


def test_raw_bytes_of_types_with_secrets_are_known_by_their_key() -> None:
    assert [key for key in range(40) if may_hold_secrets(key)] == [4, 10, 11, 26]
