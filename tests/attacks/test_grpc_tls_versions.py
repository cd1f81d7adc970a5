"""Issue 18, row 11: the gRPC listener must not offer a version of TLS that `ssl.enabled.protocols` leaves out."""

import os
import subprocess
import sys
from pathlib import Path

from kquorum.cli.main import run
from tests.support.certificates import cluster_certificates
from tests.support.cluster import PROJECT_ROOT
from tests.support.config_files import write_controller


def test_a_node_that_may_speak_only_one_version_does_not_start_with_grpc(tmp_path: Path) -> None:
    cluster_certificates(tmp_path / "certs", (1,))
    config = write_controller(
        tmp_path,
        'kquorum.grpc.listener = "127.0.0.1:0"',
        'kquorum.grpc.security = "ssl"',
        f'ssl.keystore.location = "{tmp_path}/certs/node-1.pem"',
        'ssl.enabled.protocols = "TLSv1.3"',
    )
    assert run(["format", "-c", str(config)]) == 0
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "kquorum.cli.child", "start", "--config", str(config), "--node", "1"],
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
