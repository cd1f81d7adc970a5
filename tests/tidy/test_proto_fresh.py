"""The checked-in protobuf modules are what their .proto files say."""

from pathlib import Path

import pytest

from kquorum.wire.proto import generate as generator
from tests.support.tree import ROOT


def test_generated_modules_are_fresh(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools", reason="the protobuf compiler (grpcio-tools) is not installed")
    written = generator.generate(tmp_path)
    stale = [
        str(path)
        for path in written
        if not (ROOT / path).is_file() or (ROOT / path).read_text() != (tmp_path / path).read_text()
    ]
    assert stale == [], "run 'make proto'"


def test_no_generated_module_has_lost_its_proto_file() -> None:
    known = {path.stem for path in generator.proto_files()}
    generated = {path.name.partition("_pb2")[0] for path in (ROOT / generator.FOLDER).glob("*_pb2*")}
    assert "inspect" in known
    assert generated == known


def test_the_versions_of_the_compiler_are_left_out() -> None:
    text = (
        "# source: a.proto\n# Protobuf Python Version: 9.9.9\n"
        "from google.protobuf import runtime_version as _runtime_version\n"
        "_runtime_version.ValidateProtobufRuntimeVersion(\n    _runtime_version.Domain.PUBLIC,\n    9,\n)\nrest = 1\n"
    )
    assert generator.without_versions(text) == "# source: a.proto\nrest = 1\n"
