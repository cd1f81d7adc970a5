"""`kquorum up --ephemeral`: a cluster of which nothing is left when it stops."""

import shlex

from kquorum.cli.commands.up.run import stop_signals
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import complain, say
from kquorum.cli.processes import wait_until
from kquorum.testing.cluster import ClusterFailed, KafkaCluster

_LOOK_S = 1.0


def run_ephemeral(brokers: int, controllers: int) -> None:
    """Until Ctrl-C or SIGTERM. Raises CliError when it does not start."""
    with stop_signals() as stop:
        try:
            with KafkaCluster(brokers=brokers, controllers=controllers) as cluster:
                say(cluster.bootstrap_servers)
                complain(
                    f"export KQUORUM_CONFIG={shlex.quote(str(cluster.config_path))} lets the other commands find it",
                    style="cyan",
                    label="up",
                )
                while cluster.is_running and not wait_until(lambda: stop.came, _LOOK_S, interval_s=0.1):
                    pass
                if not stop.came:
                    raise ClusterFailed("the host of the cluster has ended")
        except ClusterFailed as error:
            raise CliError(str(error), status=ExitStatus.FAILED) from None
