"""Generate the Python modules of every .proto file in this folder: `python -m kquorum.wire.proto.generate [TARGET]`.

TARGET is the folder that stands for the root of the project (default: the project itself). The compiler stamps its own
version into what it writes, and a refusal of older runtimes. Neither is kept: the modules use nothing that the oldest
protobuf and grpcio named in pyproject.toml lack, and another compiler generates the same text.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Through the package: the generated modules import each other by this path.
FOLDER = Path("kquorum/wire/proto")

_PROTOBUF_VERSION = re.compile(
    r"^# Protobuf Python Version: .*\n"
    r"|^from google\.protobuf import runtime_version as _runtime_version\n"
    r"|^_runtime_version\.ValidateProtobufRuntimeVersion\(\n(?: .*\n)*\)\n",
    re.MULTILINE,
)
_GRPC_VERSION = re.compile(r"^GRPC_GENERATED_VERSION = (?s:.*?)^    \)\n", re.MULTILINE)
_GRPC_UNUSED = re.compile(r"^import warnings\n", re.MULTILINE)


class CannotGenerate(Exception):
    """The compiler is missing or refuses a .proto file."""


def proto_files() -> tuple[Path, ...]:
    """The .proto files of this folder, relative to the root of the project."""
    return tuple(sorted(path.relative_to(ROOT) for path in (ROOT / FOLDER).glob("*.proto")))


def generate(target: Path) -> tuple[Path, ...]:
    """Write the modules beneath `target`; answers their paths relative to it. Raises CannotGenerate."""
    written: list[Path] = []
    for proto in proto_files():
        _run_compiler(proto, target)
        for path in _modules_of(proto):
            text = (target / path).read_text()
            if path.name.endswith("_pb2_grpc.py") and "/kquorum." not in text:
                (target / path).unlink()  # no service in this file
                continue
            (target / path).write_text(without_versions(text))
            written.append(path)
    return tuple(written)


def without_versions(text: str) -> str:
    """A generated module without the compiler's version and the check of the runtime's."""
    for pattern in (_PROTOBUF_VERSION, _GRPC_VERSION, _GRPC_UNUSED):
        text = pattern.sub("", text)
    return text


def _modules_of(proto: Path) -> tuple[Path, ...]:
    return tuple(proto.with_name(proto.stem + suffix) for suffix in ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py"))


def _run_compiler(proto: Path, target: Path) -> None:
    try:
        from grpc_tools import protoc
    except ImportError:
        raise CannotGenerate("the protobuf compiler is missing: pip install grpcio-tools") from None
    outputs = [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python")]
    if protoc.main(["protoc", f"--proto_path={ROOT}", *outputs, str(ROOT / proto)]) != 0:
        raise CannotGenerate(f"the compiler refuses {proto}; its message stands above")


def main(arguments: Sequence[str]) -> int:
    """Generate into the folder given, or the project; answers the exit status."""
    target = Path(arguments[0]) if arguments else ROOT
    try:
        written = generate(target)
    except CannotGenerate as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write("".join(f"{path}\n" for path in written))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
