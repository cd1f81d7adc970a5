"""Snapshot names and bytes, and the bootstrap checkpoint."""

from uuid import UUID

import pytest

from kquorum.snapshots.bootstrap import (
    bootstrap_records,
    read_bootstrap_checkpoint,
    write_bootstrap_checkpoint,
)
from kquorum.snapshots.naming import SnapshotId, snapshot_id_of
from kquorum.snapshots.reader import SnapshotReader
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.control_records import KRaftVersionFeature, Voter, VotersRecord
from kquorum.wire.errors import CorruptBatch, DecodeError
from kquorum.wire.metadata_records.features import FeatureLevelRecord, NoOpRecord
from kquorum.wire.record_batch import CompressionCodec, check_batch, read_records

ID = SnapshotId(7268, 3)
NOW_MS = 1_700_000_000_000


def written(values: list[bytes], **options: object) -> list[bytes]:
    writer = SnapshotWriter(ID, timestamp_ms=NOW_MS, last_contained_log_timestamp_ms=5, **options)  # type: ignore[arg-type]
    return list(writer.write(values))


class TestNames:
    def test_name_and_back(self) -> None:
        assert ID.file_name == "00000000000000007268-0000000003.checkpoint"
        assert snapshot_id_of(ID.file_name) == ID

    @pytest.mark.parametrize(
        "name",
        [
            "bootstrap.checkpoint",
            "00000000000000007268.snapshot",
            "00000000000000007268-0000000003.checkpoint.part",
            "00000000000000007268-0000000003.checkpoint.deleted",
            "7268-3.checkpoint",
            "00000000000000007268-0000000003.checkpoint\n",
        ],
    )
    def test_other_files_are_no_snapshots(self, name: str) -> None:
        assert snapshot_id_of(name) is None

    def test_epochs_count_before_offsets(self) -> None:
        ids = [SnapshotId(5, 2), SnapshotId(9, 1), SnapshotId(4, 2)]
        assert max(ids, key=lambda each: each.order) == SnapshotId(5, 2)


class TestContent:
    def test_offsets_count_the_file_and_every_batch_has_the_epoch(self) -> None:
        batches = written([b"%d" % number for number in range(5)])
        headers = [check_batch(batch) for batch in batches]
        assert [header.base_offset for header in headers] == [0, 1, 6]
        assert [header.is_control for header in headers] == [True, False, True]
        assert {header.partition_leader_epoch for header in headers} == {3}
        assert [len(batches[0]), len(batches[2])] == [83, 75]

    @pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.LZ4])
    def test_read_gives_what_was_written(self, codec: CompressionCodec) -> None:
        values = [b"%05d" % number * 20 for number in range(300)]
        batches = written(values, codec=codec, max_batch_bytes=2000)
        assert len(batches) > 10
        assert all(len(batch) <= 2000 for batch in batches)
        assert (check_batch(batches[1]).codec is codec) or codec is CompressionCodec.NONE
        reader = SnapshotReader(b"".join(batches))
        assert list(reader.values()) == values
        assert (reader.last_contained_log_timestamp_ms, reader.epoch) == (5, 3)
        assert (reader.kraft_version, reader.voters) == (0, None)

    def test_empty_image(self) -> None:
        assert list(SnapshotReader(b"".join(written([]))).values()) == []

    def test_voters_share_the_header_batch(self) -> None:
        feature = KRaftVersionFeature(min_supported_version=0, max_supported_version=1)
        voter = Voter(voter_id=1, voter_directory_id=UUID(int=500), k_raft_version_feature=feature)
        voters = VotersRecord(voters=(voter,))
        batches = written([b"x"], kraft_version=1, voters=voters)
        assert len(read_records(batches[0], 0, check_batch(batches[0]))) == 3
        reader = SnapshotReader(b"".join(batches))
        assert (reader.kraft_version, reader.voters) == (1, voters)

    def test_missing_footer(self) -> None:
        reader = SnapshotReader(b"".join(written([b"x"])[:-1]))
        with pytest.raises(DecodeError, match="no footer"):
            list(reader.values())

    @pytest.mark.parametrize("cut", [1, 30, 74])
    def test_torn_footer(self, cut: int) -> None:
        with pytest.raises(DecodeError):
            list(SnapshotReader(b"".join(written([b"x"]))[:-cut]).values())

    def test_flipped_bit_anywhere_below_the_checksum(self) -> None:
        data = b"".join(written([b"x" * 50]))
        start = 83 + 21
        for position in range(start, start + 60):
            bad = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
            with pytest.raises(CorruptBatch):
                list(SnapshotReader(bad).values())

    def test_bytes_behind_the_footer(self) -> None:
        batches = written([b"x"])
        with pytest.raises(DecodeError, match="follow the footer"):
            list(SnapshotReader(b"".join([*batches, batches[-1]])).values())

    def test_log_is_no_snapshot(self) -> None:
        with pytest.raises(DecodeError, match="does not begin with a snapshot header"):
            SnapshotReader(written([b"x"])[1])


class TestBootstrap:
    def test_metadata_version_alone_takes_249_bytes(self) -> None:
        records = bootstrap_records(25, {})
        data = write_bootstrap_checkpoint(records, NOW_MS)
        assert len(data) == 249
        assert read_bootstrap_checkpoint(data) == records

    def test_defaults_are_those_of_kafka_4_0(self) -> None:
        assert bootstrap_records() == (
            FeatureLevelRecord(name="metadata.version", feature_level=25),
            FeatureLevelRecord(name="group.version", feature_level=1),
            FeatureLevelRecord(name="transaction.version", feature_level=2),
        )

    def test_features_at_zero_are_left_out(self) -> None:
        names = [
            record.name
            for record in bootstrap_records(20, {"z": 1, "off": 0, "a": 2})
            if hasattr(record, "name")
        ]
        assert names == ["metadata.version", "a", "z"]

    def test_file_without_or_with_too_old_a_level(self) -> None:
        with pytest.raises(DecodeError, match=r"no record for metadata\.version"):
            read_bootstrap_checkpoint(write_bootstrap_checkpoint([NoOpRecord()], NOW_MS))
        with pytest.raises(DecodeError, match="3 is too old"):
            read_bootstrap_checkpoint(write_bootstrap_checkpoint(bootstrap_records(3, {}), NOW_MS))
