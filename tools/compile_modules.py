"""Builds the hot modules with mypyc into a folder, with the manifest by which `kquorum.compiled` uses them.

    python -m tools.compile_modules [--out build/compiled] [--jobs N]

mypyc comes with mypy; a C compiler and Python's headers are needed. The sources stay as they are, and run where nothing
was built.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from kquorum.compiled import MANIFEST, PYTHON, source_digest

ROOT = Path(__file__).parent.parent
# What a request and a commit pass on their way through a leader and a follower (docs/benchmarks.md says what it gives),
# below `kquorum/`. A folder stands for its modules, without its subfolders and without __init__.
HOT: Final = (
    "raft",
    "raft/leader",
    "raft/follower",
    "raft/adapters/clock.py",
    "raft/adapters/delivery.py",
    "raft/adapters/disk_thread.py",
    "raft/adapters/driver.py",
    "raft/adapters/driver_ports.py",
    "raft/adapters/driver_snapshots.py",
    "raft/adapters/file_log.py",
    "raft/adapters/local_requests.py",
    "raft/adapters/raft_requests.py",
    "raft/adapters/space_watch.py",
    "raft/adapters/transport.py",
    "raft/adapters/kafka_codec",
    "network/aside.py",
    "network/bounded_log.py",
    "network/call_rate.py",
    "network/connection_quota.py",
    "network/deadlines.py",
    "network/flow_control.py",
    "network/limits.py",
    "network/long_replies.py",
    "network/long_requests.py",
    "network/output.py",
    "network/receive_buffer.py",
    "network/replies.py",
    "network/request_budget.py",
    "network/requests.py",
    "network/serving.py",
    "network/turns.py",
    "metadata/changes.py",
    "metadata/loader.py",
    "metadata/adapters/listener.py",
    "metadata/adapters/request_bounds.py",
    "metadata/adapters/requests.py",
    "metadata/authorizer/access.py",
    "metadata/authorizer/gate.py",
    "metadata/authorizer/verdict.py",
    "metadata/controller",
    "metadata/controller/brokers",
    "metadata/controller/configs",
    "metadata/controller/partitions",
    "metadata/controller/quorum",
    "metadata/controller/topics",
    "metadata/image/cluster.py",
    "metadata/image/configs.py",
    "metadata/image/delta.py",
    "metadata/image/features.py",
    "metadata/image/image.py",
    "metadata/image/metadata_version.py",
    "metadata/image/quotas.py",
    "metadata/image/records.py",
    "metadata/image/security.py",
    "metadata/image/topics.py",
    "metadata/state_hash/comparison.py",
    "metadata/state_hash/image_hash.py",
    # It inherits from a compiled class.
    "metadata/log_check/state_replay.py",
    "node/observability/latency.py",
    "node/observed_state_machine.py",
    "node/peers.py",
    "node/state_watch.py",
    "storage/batch_cache.py",
    "storage/indexes.py",
    "storage/reserved_space.py",
    "storage/segment.py",
    "storage/segment_list.py",
    "storage/segmented_log.py",
    "wire/audit_note.py",
    "wire/batch_rules.py",
    "wire/log_batch.py",
    "wire/message_codec.py",
    "wire/primitives.py",
    "wire/record_frame.py",
    "wire/protocol/bodies.py",
    "wire/protocol/frames.py",
    "wire/protocol/headers.py",
)


# mypyc cannot build a generic dataclass.
NOT: Final = frozenset({"raft/adapters/kafka_codec/partition.py"})


def sources() -> list[str]:
    found: list[str] = []
    for name in HOT:
        path = ROOT / "kquorum" / name
        modules = [path] if path.is_file() else sorted(path.glob("*.py"))
        found += [
            str(each.relative_to(ROOT))
            for each in modules
            if each.name != "__init__.py" and str(each.relative_to(ROOT / "kquorum")) not in NOT
        ]
    return found


def build(names: Sequence[str], out: Path, jobs: int = 1) -> None:
    """Compile the sources of these names, relative to the root, into `out`, which is replaced as a whole."""
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class ParallelBuild(build_ext):
        """One extension of many C files: `jobs` of them are compiled at once."""

        def build_extensions(self) -> None:
            one_by_one = self.compiler.compile
            with ThreadPoolExecutor(jobs) as pool:

                def compile_all(files: Sequence[str], **options: Any) -> list[str]:
                    made = pool.map(lambda file: one_by_one([file], **options), files)
                    return [each for some in made for each in some]

                self.compiler.compile = compile_all
                super().build_extensions()

    with tempfile.TemporaryDirectory(prefix="kquorum-compile-") as work:
        made, generated = Path(work) / "made", Path(work) / "c"
        # Of what is read now: a source that is edited during the build is not what was built.
        digests = {name: source_digest(ROOT / name) for name in names}
        extensions = mypycify(
            list(names), opt_level="1", debug_level="0", multi_file=True, target_dir=str(generated)
        )
        command = ParallelBuild(Distribution({"name": "kquorum", "ext_modules": extensions}))
        command.build_lib, command.build_temp = str(made), str(Path(work) / "objects")
        command.ensure_finalized()
        command.run()
        modules = {
            str(path.relative_to(made)).split(".")[0].replace(os.sep, "."): str(path.relative_to(made))
            for path in made.rglob("*.so")
        }
        manifest = {"python": PYTHON, "modules": modules, "sources": digests}
        (made / MANIFEST).write_text(json.dumps(manifest, indent=1))
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "compiled")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="C compilers at once")
    options = parser.parse_args()
    os.chdir(ROOT)
    names = sources()
    build(names, options.out, options.jobs)
    sys.stdout.write(f"compiled {len(names)} modules into {options.out}\n")


if __name__ == "__main__":
    main()
