"""The server's side of an MCP connection over in-memory streams: it answers every request itself, and takes down what it receives.

An answer comes at once; or, with `round_trip_ms`, after two sleeps of half of that, with the task's state read between them. Answers
are written as JSON text, so that a hint is what a wire would carry. The two protocol revisions differ in names:
`LEGACY` has `pollInterval` and `tasks/result`, `MODERN` has `pollIntervalMs` and results inline.
"""

import asyncio
import json

from measure import hint_of, status_of

CREATED = "2026-01-01T00:00:00Z"
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
DONE = {"content": [{"type": "text", "text": "done"}]}
QUESTION = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "Go on?", "requestedSchema": {"type": "object", "properties": {"go": {"type": "boolean"}}}},
}


class Peer:
    """`decode` makes a dictionary of a stream's message, `encode` a stream's message of JSON text."""

    def __init__(self, scenario, revision, decode, encode):
        self.scenario = scenario
        self.revision = revision
        self.decode = decode
        self.encode = encode
        self.run = None
        self.gets = 0

    async def serve(self, receive, send):
        async for message in receive:
            request = self.decode(message)
            if self.run is not None:
                self.run.sent(request.get("method", "response"))
            if "id" not in request or "method" not in request:
                continue
            half = self.scenario["round_trip_ms"] / 2 / 1000
            if half:
                await asyncio.sleep(half)
            answer = self.result(request["method"], request.get("params") or {})
            if half:
                await asyncio.sleep(half)
            await send.send(self.encode(f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":{answer}}}'))

    def result(self, method, params):
        if method == "initialize":
            capabilities = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
            server = {"name": "in-process", "version": "1"}
            return json.dumps({"protocolVersion": LEGACY, "capabilities": capabilities, "serverInfo": server})
        if method == "tools/list":
            tools = [{"name": "work", "inputSchema": {"type": "object"}}]
            return json.dumps({"tools": tools, **self.marked("complete", ttlMs=0, cacheScope="private")})
        if method == "tools/call":
            task = self.task("working", self.scenario["create_hint"])
            return f'{{"task":{task}}}' if self.revision == LEGACY else task
        if method == "tasks/get":
            hint = hint_of(self.scenario, self.gets)
            self.gets += 1
            return self.task(status_of(self.scenario, self.run), hint, result_type="complete")
        if method == "tasks/result":
            return json.dumps(DONE)
        if method == "tasks/update":
            return json.dumps(self.marked("complete"))
        raise ValueError(f"the in-process server has no answer to {method}")

    def marked(self, result_type, **more):
        """The modern revision says in every result what it is."""
        return {} if self.revision == LEGACY else {"resultType": result_type, **more}

    def task(self, status, hint, result_type="task"):
        legacy = self.revision == LEGACY
        fields = {"taskId": "task-1", "status": status, "createdAt": CREATED, "lastUpdatedAt": CREATED, "ttl" if legacy else "ttlMs": None}
        fields.update(self.marked(result_type))
        if not legacy and status == "completed":
            fields["result"] = {**DONE, "resultType": "complete"}
        if not legacy and status == "input_required":
            fields["inputRequests"] = {"question-1": QUESTION}
        text = json.dumps(fields)
        return text if hint is None else f'{text[:-1]},"{"pollInterval" if legacy else "pollIntervalMs"}":{hint}}}'
