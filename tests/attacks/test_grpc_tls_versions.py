"""Issue 18, row 11: the gRPC listener must not offer a version of TLS that `ssl.enabled.protocols` leaves out."""

import os
from pathlib import Path

from cli.main import run
from cli.processes import NodeProcess, wait_until
from tests.support.certificates import cluster_certificates
from tests.support.cluster import PROJECT_ROOT
from tests.support.single_node import HOST, NODE_ID, write_config


def test_a_node_that_may_speak_only_one_version_does_not_start_with_grpc(tmp_path: Path) -> None:
    cluster_certificates(tmp_path / "certs", (NODE_ID,))
    values = {
        "process.roles": "controller",
        "listeners": f"CONTROLLER://{HOST}:0",
        "kquorum.grpc.listener": f"{HOST}:0",
        "kquorum.grpc.security": "ssl",
        "ssl.keystore.location": str(tmp_path / "certs" / "node-1.pem"),
        "ssl.enabled.protocols": "TLSv1.3",
    }
    config = write_config(tmp_path, values)
    assert run(["format", "-c", str(config)]) == 0
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT), "COLUMNS": "1000"}
    process = NodeProcess(config, NODE_ID, tmp_path / "node.out", environment=environment)
    try:
        process.start()
        assert wait_until(lambda: not process.is_running, 30), process.output()
    finally:
        process.kill()
    assert process.exit_status not in (None, 0)
    assert "ssl.enabled.protocols" in process.output()
    assert "listener.name.grpc.ssl.enabled.protocols=TLSv1.2,TLSv1.3" in process.output()
    assert "Traceback" not in process.output()
