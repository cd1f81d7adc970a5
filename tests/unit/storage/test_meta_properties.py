from pathlib import Path
from uuid import UUID

import pytest

from kquorum.storage.errors import MetaPropertiesDamaged, NotFormatted, WrongFolder
from kquorum.storage.meta_properties import (
    MetaProperties,
    check_meta_properties,
    decode_meta_properties,
    encode_meta_properties,
    open_meta_properties,
    read_meta_properties,
    write_meta_properties,
)

NOW_MS = 1_700_000_000_000


def test_the_file_is_laid_out_as_kafka_lays_it_out(tmp_path: Path) -> None:
    write_meta_properties(
        tmp_path, MetaProperties(cluster_id="abc", node_id=3, directory_id=UUID(int=1)), NOW_MS
    )
    assert (tmp_path / "meta.properties").read_text() == (
        "#\n#Tue Nov 14 22:13:20 UTC 2023\n"
        "cluster.id=abc\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=3\nversion=1\n"
    )


@pytest.mark.parametrize("cluster_id", ["Mk3OEYBSD34fcwNTJENDM2Qk", "a=b:c#d!e\\f", "with blank", "==", "ü"])
def test_any_cluster_id_survives(cluster_id: str) -> None:
    properties = MetaProperties(cluster_id=cluster_id, node_id=0, others=(("future.key", "x=y"),))
    assert decode_meta_properties(encode_meta_properties(properties, NOW_MS)) == properties


def test_the_files_of_real_clusters_are_read(real_logs: Path) -> None:
    found = {
        path.parent.name: read_meta_properties(path.parent) for path in real_logs.glob("*/meta.properties")
    }
    assert found["three-controllers-2"] == MetaProperties(cluster_id="EpwKlK0lR6qKZW0cGwZz8w", node_id=2)
    assert found["seven-epochs"].cluster_id == "Mk3OEYBSD34fcwNTJENDM2Qk"
    assert found["seven-epochs"].directory_id is not None


@pytest.mark.parametrize("line", ["node.id=1", "node.id = 1", "node.id:1", "  node.id\t1", "node\\.id=\\1"])
def test_java_allows_several_ways_to_write_a_line(line: str) -> None:
    content = f"! comment\nversion=1\n\ncluster.id=c\n{line}\n".encode()
    assert decode_meta_properties(content) == MetaProperties(cluster_id="c", node_id=1)


def test_version_0_names_the_node_by_its_broker_id() -> None:
    assert decode_meta_properties(b"cluster.id=c\nbroker.id=5\n").node_id == 5


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"version=2\ncluster.id=c\nnode.id=1\n", "version 2 is not supported"),
        (b"version=1\nnode.id=1\n", "cluster.id is missing"),
        (b"version=1\ncluster.id=c\n", "node.id is missing"),
        (b"version=1\ncluster.id=c\nnode.id=-1\n", "not a number"),
        (b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=zz\n", "not a uuid"),
        (b"\xff\xfe", "damaged"),
        (b"version=1\ncluster.id=\\u0041\nnode.id=1\n", "an escape"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "meta.properties").write_bytes(content)
    with pytest.raises(MetaPropertiesDamaged, match=reason):
        read_meta_properties(tmp_path)


def test_an_unformatted_folder_is_refused_with_the_format_command(tmp_path: Path) -> None:
    with pytest.raises(NotFormatted, match="kquorum format") as caught:
        read_meta_properties(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_a_folder_of_another_cluster_or_node_is_refused_with_both_ids(tmp_path: Path) -> None:
    properties = MetaProperties(cluster_id="theirs", node_id=4)
    with pytest.raises(WrongFolder, match=r"meta\.properties says cluster\.id is theirs.*ours"):
        check_meta_properties(tmp_path, properties, cluster_id="ours", node_id=4)
    with pytest.raises(WrongFolder, match=r"meta\.properties says node\.id is 4.*configured with 5"):
        check_meta_properties(tmp_path, properties, cluster_id="theirs", node_id=5)
    check_meta_properties(tmp_path, properties, cluster_id=None, node_id=4)


def test_a_folder_from_before_directory_ids_is_given_one_for_good(tmp_path: Path) -> None:
    write_meta_properties(tmp_path, MetaProperties(cluster_id="c", node_id=1), NOW_MS)
    for offered in (UUID(int=7), UUID(int=8)):
        opened = open_meta_properties(
            tmp_path, cluster_id="c", node_id=1, new_directory_id=offered, now_ms=NOW_MS
        )
        assert opened.directory_id == UUID(int=7)
    assert read_meta_properties(tmp_path).directory_id == UUID(int=7)
