"""Follow a cluster's brokers and partition leaders from your own program.

    .venv/bin/python examples/watch_client.py 127.0.0.1:9291

It needs grpcio, protobuf and the modules in wire/proto; any other language is served by wire/proto/inspect.proto.
"""

import sys

import grpc

from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.proto.inspect_pb2_grpc import InspectStub


def main(address: str) -> None:
    with grpc.insecure_channel(address) as channel:
        inspect = InspectStub(channel)  # type: ignore[no-untyped-call]
        header = next(iter(inspect.Image(pb.ImageRequest()))).header
        print(f"cluster {header.cluster_id}: {len(header.brokers)} brokers, {header.topic_count} topics")

        # The image stands at an offset; the changes after it follow without a gap.
        request = pb.WatchRequest(from_offset=header.provenance.offset + 1)
        for change in inspect.Watch(request):
            if change.HasField("partition"):
                partition = change.partition
                print(
                    change.offset,
                    f"{partition.topic}-{partition.partition_id}",
                    "is led by",
                    partition.leader,
                )
            elif change.HasField("broker"):
                print(change.offset, "broker", change.broker.id, pb.ChangeKind.Name(change.kind))


if __name__ == "__main__":
    try:
        main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9291")
    except grpc.RpcError as error:
        sys.exit(
            f"the stream ended ({error.code().name}: {error.details()}); resume from the last offset + 1"
        )
    except KeyboardInterrupt:
        sys.exit(130)
