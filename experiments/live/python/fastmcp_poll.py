"""Drives the task loop of FastMCP 4: `client.call_tool` with the extension of `fastmcp-tasks`, which polls `tasks/get` behind the call.

    python fastmcp_poll.py SCENARIO      (one object of scenarios.json)

A real `Client` speaks over in-memory streams to the peer of peer.py, which makes every tool call a task. A run starts with `call_tool`, and so
does the task's clock; it ends when the call returns. Taken down: every message that arrives at the peer.
"""

import asyncio
import contextlib
import json
import logging

import fastmcp_tasks  # noqa: F401  (importing it makes every Client able to drive tasks)
import mcp_types
from fastmcp import Client
from fastmcp.client.transports.base import ClientTransport, TransportOptions
from fastmcp_tasks.client import _send_get
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter

from measure import measure_async, scenario_argument
from peer import MODERN, Peer

scenario = scenario_argument()
logging.disable(logging.WARNING)  # stdout has the results, and stderr what is wrong


def decode(message):
    return json.loads(jsonrpc_message_adapter.dump_json(message.message, by_alias=True, exclude_none=True))


def encode(text):
    return SessionMessage(jsonrpc_message_adapter.validate_json(text))


class PeerTransport(ClientTransport):
    """Connects a client to a peer in the same event loop."""

    def __init__(self, peer):
        self.peer = peer

    @contextlib.asynccontextmanager
    async def connect_session(self, *, transport_options=None, **session_options):
        session_class = (transport_options or TransportOptions()).session_class
        async with create_client_server_memory_streams() as (near, far):
            serving = asyncio.ensure_future(self.peer.serve(*far))
            async with session_class(read_stream=near[0], write_stream=near[1], **session_options) as session:
                yield session
            serving.cancel()
            await asyncio.wait([serving])


async def answer(message, response_type, params, context):
    return mcp_types.ElicitResult(action="accept", content={"go": True})


def client_of(peer):
    return Client(PeerTransport(peer), mode=MODERN, elicitation_handler=answer)


async def once(run):
    peer = Peer(scenario, MODERN, decode, encode)
    async with client_of(peer) as client:
        await client.list_tools()
        run.restart()
        peer.run = run
        await run.until_over(client.call_tool("work", {}))
        await asyncio.sleep(0.005)  # what is sent on the way out still belongs to the run


async def main():
    calm = Peer({**scenario, "hints": ["1000"], "round_trip_ms": 0}, MODERN, decode, encode)
    async with client_of(calm) as client:
        request = lambda: _send_get(client.session, "task-1")
        await measure_async("python/fastmcp_poll", "fastmcp-tasks", scenario, once, request, asyncio.sleep)


asyncio.run(main())
