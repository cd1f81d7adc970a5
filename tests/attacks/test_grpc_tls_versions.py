"""Issue 18, row 11: the gRPC listener must not offer a version of TLS that `ssl.enabled.protocols` leaves out."""

import os
import subprocess
import sys
from pathlib import Path

from cli.main import run
from tests.support.certificates import cluster_certificates
from tests.support.cluster import PROJECT_ROOT

CONFIG = """\
[cluster]
"cluster.id" = "a3F1b3J1bS1leGFtcGxlMQ"
[[nodes]]
"node.id" = 1
"process.roles" = "controller"
"listeners" = "CONTROLLER://127.0.0.1:0"
"log.dirs" = "{folder}/data"
"controller.listener.names" = "CONTROLLER"
"kquorum.grpc.listener" = "127.0.0.1:0"
"kquorum.grpc.security" = "ssl"
"ssl.keystore.location" = "{folder}/certs/node-1.pem"
"ssl.enabled.protocols" = "TLSv1.3"
"""


def test_a_node_that_may_speak_only_one_version_does_not_start_with_grpc(tmp_path: Path) -> None:
    cluster_certificates(tmp_path / "certs", (1,))
    config = tmp_path / "quorum.toml"
    config.write_text(CONFIG.format(folder=tmp_path))
    assert run(["format", "-c", str(config)]) == 0
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "cli.child", "start", "--config", str(config), "--node", "1"],
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode != 0
    assert "ssl.enabled.protocols" in ended.stderr
    assert "listener.name.grpc.ssl.enabled.protocols=TLSv1.2,TLSv1.3" in ended.stderr
    assert "Traceback" not in ended.stderr
