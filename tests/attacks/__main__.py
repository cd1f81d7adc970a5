"""The longest turn of the loop for the longest bodies of every array of every API: python -m tests.attacks --help"""

import argparse
import asyncio
import gc
import tempfile
from pathlib import Path

from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.attacks.rig import Rig, rig, send
from tests.support.network.long_bodies import LongArray, long_arrays
from tests.support.node.loop_turns import Turns, measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--counts", type=int, nargs="+", default=[1_000, 5_000, 49_000, 199_000], help="elements"
    )
    parser.add_argument("--apis", nargs="*", help="names; all by default")
    parser.add_argument("--servers", nargs="*", default=["broker", "controller"])
    parser.add_argument("--denied", action="store_true", help="the client may do nothing")
    parser.add_argument("--calls", action="store_true", help="count calls instead of milliseconds")
    parser.add_argument("--least", type=float, default=20.0, help="shorter turns (ms) are not told")
    asyncio.run(_run(parser.parse_args()))


async def _run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder, measured(counts_calls=arguments.calls) as turns:
        async with rig(Path(folder), allows_clients=not arguments.denied) as built:
            gc.collect()
            gc.freeze()
            for name in arguments.servers:
                state = built.servers[name]._state
                for key in state.supported:
                    if not arguments.apis or ApiKey(key).name in arguments.apis:
                        await _try(built, name, ApiKey(key), arguments, turns)


async def _try(built: Rig, name: str, api_key: ApiKey, arguments: argparse.Namespace, turns: Turns) -> None:
    lowest, highest = supported_versions(api_key)
    for version in {lowest, highest}:
        for array in long_arrays(api_key, version):
            for count in arguments.counts:
                await _one(built, name, array, count, arguments, turns)


async def _one(
    built: Rig, name: str, array: LongArray, count: int, arguments: argparse.Namespace, turns: Turns
) -> None:
    server = built.servers[name]
    if (
        not server._state.supported[array.api_key][0]
        <= array.version
        <= server._state.supported[array.api_key][1]
    ):
        return
    try:
        request = await asyncio.to_thread(array.request, count)
    except (ValueError, TypeError) as error:
        print(f"{name} {array}: cannot be made: {error}")
        return
    turns.reset()
    try:
        answer = await send(server.bound_port, request, timeout_s=20)
        outcome = "closed" if answer is None else f"{len(answer)} bytes"
    except TimeoutError:
        outcome = "no answer"
    value = turns.most_calls / 10_000 if arguments.calls else turns.longest_s * 1000
    if value >= arguments.least:
        shown = f"{turns.most_calls} calls" if arguments.calls else f"{value:.0f} ms"
        print(
            f"{name:10} {array!s:70} {count:8} elements {len(request):9} B {shown:>14}  {outcome}", flush=True
        )


if __name__ == "__main__":
    main()
