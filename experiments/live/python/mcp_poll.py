"""Drives the task loop of the MCP Python SDK 1.x: `session.experimental.poll_task`, with `call_tool_as_task` before it and
`get_task_result` after it, as its documentation has them.

    python mcp_poll.py SCENARIO      (one object of scenarios.json)

A real `ClientSession` speaks over in-memory streams to the peer of peer.py. A run starts with `call_tool_as_task`, and so does the task's
clock; it ends when the result is there. Taken down: every message that arrives at the peer.
"""

import asyncio
import json
import warnings

import anyio
import mcp.types as types
from mcp import ClientSession
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from measure import measure_async, scenario_argument
from peer import LEGACY, Peer

scenario = scenario_argument()
warnings.simplefilter("ignore", DeprecationWarning)  # the SDK says at every call that these calls will go


def decode(message):
    return json.loads(message.message.model_dump_json(by_alias=True, exclude_none=True))


def encode(text):
    return SessionMessage(types.JSONRPCMessage.model_validate_json(text))


async def poll(session):
    created = await session.experimental.call_tool_as_task("work", {})
    async for _ in session.experimental.poll_task(created.task.taskId):
        pass
    await session.experimental.get_task_result(created.task.taskId, types.CallToolResult)


async def once(run):
    async with connected(scenario) as (session, peer):
        run.restart()
        peer.run = run
        await run.until_over(poll(session))
        await asyncio.sleep(0.005)  # what is sent on the way out still belongs to the run


class connected:
    """A session and its peer, for the length of an `async with`."""

    def __init__(self, of):
        self.peer = Peer(of, LEGACY, decode, encode)
        self.streams = create_client_server_memory_streams()

    async def __aenter__(self):
        near, far = await self.streams.__aenter__()
        self.serving = asyncio.ensure_future(self.peer.serve(*far))
        self.session = ClientSession(*near)
        await self.session.__aenter__()
        await self.session.initialize()
        await asyncio.sleep(0.001)  # the notice that ends the handshake arrives before a run begins
        return self.session, self.peer

    async def __aexit__(self, *error):
        await self.session.__aexit__(*error)
        self.serving.cancel()
        await asyncio.wait([self.serving])
        await self.streams.__aexit__(*error)


async def main():
    async with connected({**scenario, "hints": ["1000"], "create_hint": "1000"}) as (calm, _):
        request = lambda: calm.experimental.get_task("task-1")
        await measure_async("python/mcp_poll", "mcp", scenario, once, request, anyio.sleep)


asyncio.run(main())
