"""The steps of the demo, one after another, each with what the audience reads."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kquorum.cli.commands.demo.kafka_client import KafkaClient, WriteProbe
from kquorum.cli.commands.demo.record_feed import RECORDS_AT_A_TIME, RecordFeed
from kquorum.cli.commands.demo.stage import Stage
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.node.config.model import NodeConfig
from kquorum.wire.wording import counted

_TIMEOUT_S = 5.0


def show_health(stage: Stage) -> None:
    """Of every node that has a `kquorum.metrics.listener`, once each is ready."""
    watched = [node for node in stage.config.nodes if node.kquorum_metrics_listener is not None]
    stage.wait(lambda: all(_health(node) is not None for node in watched), "every node has seen a commit")
    for node in watched:
        health = _health(node) or {}
        figures = sum(not line.startswith("#") for line in _get(node, "metrics").splitlines())
        stage.say(
            f"http://{node.kquorum_metrics_listener}/healthz: node {node.node_id} is {health.get('status')}, "
            f"its last commit {health.get('ms_since_commit')} ms ago; /metrics has {figures} figures"
        )


def _health(node: NodeConfig) -> dict[str, Any] | None:
    """None until the node is ready."""
    try:
        answer: dict[str, Any] = json.loads(_get(node, "healthz"))
    except urllib.error.URLError:
        return None
    return answer


def _get(node: NodeConfig, page: str) -> str:
    url = f"http://{node.kquorum_metrics_listener}/{page}"
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
        text: str = answer.read().decode()
    return text


TOPICS = {"orders": 6, "payments": 3, "clicks": 12}


def start_nodes(stage: Stage) -> None:
    with stage.step(1, "Three controllers and three brokers, each a process of its own"):
        stage.show("format", "--config", str(stage.config_path))
        for node in stage.nodes.nodes.values():
            stage.announce(("start", "--config", str(stage.config_path), "--node", str(node.node_id), "&"))
            node.start()
        with stage.console.status("waiting until every node is ready ..."):
            for node in stage.nodes.nodes.values():
                node.wait_ready()
        stage.say(f"six nodes are up; their folders are in {stage.config.nodes[0].metadata_log_dir.parent}")


def show_quorum(stage: Stage) -> None:
    with stage.step(2, "The quorum and its brokers"):
        stage.wait_for_quorum(_everybody_fetches(stage), "every voter and observer fetches")
        stage.show("quorum", "status", "--config", str(stage.config_path))
        stage.show("brokers", "--config", str(stage.config_path))
        show_health(stage)


def _everybody_fetches(stage: Stage) -> Any:
    def check(status: dict[str, Any]) -> bool:
        replicas = [*status["voters"], *status["observers"]]
        return len(replicas) == len(stage.config.nodes) and all(
            replica["lag"] is not None for replica in replicas
        )

    return check


def use_a_real_client(stage: Stage) -> None:
    with stage.step(
        3, "A real Kafka client creates topics through one broker and lists them through another"
    ):
        first, second = KafkaClient(stage.broker_address(0)), KafkaClient(stage.broker_address(1))
        first.create(TOPICS)
        stage.created.extend(TOPICS)
        stage.say(f"kafka-python at {first.bootstrap} created {', '.join(TOPICS)}")
        stage.wait(lambda: set(TOPICS) <= set(second.topics()), "the other broker shows them")
        stage.say(f"kafka-python at {second.bootstrap} lists   {', '.join(second.topics())}")
        first.close()
        second.close()
        stage.show("topics", "describe", "orders", "--config", str(stage.config_path))


def kill_the_leader(stage: Stage) -> None:
    with stage.step(4, "The leading controller is killed with SIGKILL while a client writes"):
        before = stage.wait_for_quorum(lambda status: status["leader_id"] >= 0, "a controller leads")
        leader = int(before["leader_id"])
        probe = WriteProbe(stage.broker_address(0), "probe")
        probe.start()
        stage.wait(lambda: len(probe.created) >= 5 or probe.error is not None, "the client writes")
        stage.nodes[leader].kill()
        killed_at = time.monotonic()
        stage.say(f"[red]kill -9[/] controller {leader}, leader of epoch {before['leader_epoch']}")
        after = stage.wait_for_quorum(_is_newer(before), "another controller leads")
        seen = len(probe.created)
        stage.wait(
            lambda: len(probe.created) >= seen + 5 or probe.error is not None, "the client writes again"
        )
        probe.stop()
        if probe.error is not None:
            raise CliError(f"the client gave up: {probe.error}", status=ExitStatus.FAILED)
        stage.created.extend(probe.created)
        stage.say(
            f"controller {after['leader_id']} leads epoch {after['leader_epoch']}, known here "
            f"{time.monotonic() - killed_at:.1f} s after the kill; "
            f"[bold]no write was accepted for {probe.longest_gap_s:.2f} s"
        )
        _check_nothing_is_lost(stage)
        stage.nodes[leader].start()
        stage.nodes[leader].wait_ready()
        stage.wait_for_quorum(_has_caught_up(leader), f"controller {leader} has caught up")
        stage.say(f"controller {leader} is back and has caught up:")
        stage.show("quorum", "status", "--config", str(stage.config_path))


def _is_newer(before: dict[str, Any]) -> Any:
    return lambda status: status["leader_epoch"] > before["leader_epoch"] and status["leader_id"] >= 0


def _has_caught_up(node_id: int) -> Any:
    def check(status: dict[str, Any]) -> bool:
        own = [voter for voter in status["voters"] if voter["replica_id"] == node_id]
        return bool(own) and own[0]["lag"] is not None and own[0]["lag"] <= 1

    return check


def _check_nothing_is_lost(stage: Stage) -> None:
    client = KafkaClient(stage.broker_address(1))
    stage.wait(lambda: set(stage.created) <= set(client.topics()), "everything acknowledged is there")
    stage.say(f"all {len(stage.created)} topics that were acknowledged before and after the kill are there")
    client.close()


def kill_a_broker(stage: Stage) -> None:
    with stage.step(5, "A broker is killed while records are produced, and none is lost"):
        victim = stage.config.brokers[-1].node_id
        client = KafkaClient(stage.broker_address(0))
        with RecordFeed(stage.command("produce", "orders", "--key-separator", ":", "--json")) as feed:
            stage.announce(("produce", "orders", "--key-separator", ":", "&"))
            stage.wait(lambda: feed.acknowledged >= RECORDS_AT_A_TIME, "records are acknowledged")
            partitions = f"{_led_by(client, victim)} of the {len(_partitions(client))} partitions"
            stage.say(f"{feed.acknowledged:,} records are acknowledged, and more are sent")
            stage.say(f"[red]kill -9[/] broker {victim}, the leader of {partitions}")
            before, killed_at = feed.acknowledged, time.monotonic()
            stage.nodes[victim].kill()
            stage.wait(lambda: victim not in _leaders(client, "orders"), f"broker {victim} leads nothing")
            seen = feed.acknowledged
            stage.wait(
                lambda: feed.acknowledged >= seen + RECORDS_AT_A_TIME, "records are acknowledged again"
            )
            stage.say(
                f"other brokers lead them; records of every partition are acknowledged "
                f"{time.monotonic() - killed_at:.1f} s after the kill"
            )
        _check_records(stage, feed, before)
        stage.wait(lambda: _is_out(client, victim), f"broker {victim} is fenced and out of every ISR")
        client.close()
        stage.show("topics", "describe", "orders", "--config", str(stage.config_path))
        stage.show("brokers", "--config", str(stage.config_path))


def _check_records(stage: Stage, feed: RecordFeed, before: int) -> None:
    """`before` were acknowledged before the kill. Raises CliError unless each acknowledged record is there once."""
    consumed = stage.output("consume", "orders", "--keys", "--until-end").splitlines()
    for line in (*consumed[:3], "..."):
        stage.console.out(line, highlight=False)
    if (wrong := feed.wrong(consumed)) is not None:
        raise CliError(wrong, status=ExitStatus.FAILED)
    stage.say(
        f"{before:,} records were acknowledged before the kill and {feed.acknowledged - before:,} after it: "
        f"[bold]all {feed.acknowledged:,} are there, each once and in order[/]"
    )


def _leaders(client: KafkaClient, topic: str) -> set[int]:
    """All that there might be, until the client has an answer."""
    try:
        [described] = client.describe([topic])
    except client.errors:
        return set(range(1_000))
    return {partition["leader_id"] for partition in described["partitions"]}


def _partitions(client: KafkaClient) -> list[dict[str, Any]]:
    return [partition for topic in client.describe(list(TOPICS)) for partition in topic["partitions"]]


def _led_by(client: KafkaClient, broker_id: int) -> int:
    return sum(partition["leader_id"] == broker_id for partition in _partitions(client))


def _is_out(client: KafkaClient, broker_id: int) -> bool:
    """Not before the client has an answer: it may ask the dead broker first, and does not ask another by itself."""
    try:
        partitions = _partitions(client)
    except client.errors:
        return False
    return not any(broker_id in (part["leader_id"], *part["isr_nodes"]) for part in partitions)


def read_the_log(stage: Stage) -> None:
    with stage.step(6, "The metadata log that all this has written"):
        status = stage.wait_for_quorum(lambda status: status["leader_id"] >= 0, "a controller leads")
        folder = str(stage.log_folder(int(status["leader_id"])))
        stage.show_part("log", "dump", folder, "--topic", "orders", lines=12)
        lines = stage.show_part("log", "dump", folder, "--json", "--type", "LeaderChange", lines=3)
        stage.say(
            f"{counted(lines, 'epoch')} began; `kquorum log dump {Path(folder).name}` prints every record"
        )


@contextmanager
def starting_spark(real_logs: Path | None) -> Iterator[None]:
    """For the last step: one Spark for all that it asks, started meanwhile."""
    from kquorum.cli.commands.audit.inputs import files_to_audit, total_bytes
    from kquorum.cli.commands.audit.spark import shared_spark
    from kquorum.spark_replay.session import LOCAL_MASTER

    size_in_bytes = 0 if real_logs is None else total_bytes(files_to_audit(real_logs))
    with shared_spark(master=LOCAL_MASTER, size_in_bytes=size_in_bytes):
        yield


def audit(stage: Stage, real_logs: Path | None) -> None:
    with stage.step(7, "PySpark replays the log into audit tables"):
        status = stage.wait_for_quorum(lambda status: status["leader_id"] >= 0, "a controller leads")
        folder = str(stage.log_folder(int(status["leader_id"])))
        tables = str(stage.out / "audit-of-this-run")
        stage.show_here("audit", "build", folder, "--out", tables, "--overwrite")
        stage.show_here("audit", "who", tables, "--topic", "orders")
        stage.show_here("audit", "report", tables, "--out", str(stage.out / "report.html"))
        if real_logs is None:
            stage.say(
                "no log of a real Kafka cluster was given: `make demo LOG_DIR=<its metadata folder>` audits one"
            )
            return
        stage.say(f"and the same for Apache Kafka's own logs in {real_logs}:")
        stage.show_here(
            "audit",
            "build",
            str(real_logs),
            "--out",
            str(stage.out / "audit-of-real-logs"),
            "--overwrite",
            accept=(0, 3),
        )
