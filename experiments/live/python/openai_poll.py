"""Drives the polling helper of the `openai` package for Python, `client.vector_stores.files.poll`, against a loopback HTTP server.

    python openai_poll.py SCENARIO      (one object of scenarios.json)

The server answers at once, with the scenario's hint as the header `openai-poll-after-ms`. A run starts with the call of the helper, and so does
the task's clock; it ends when the helper returns. Taken down: every request as the client's HTTP layer sends it.
"""

import json

import httpx2
from openai import OpenAI

from loopback import Loopback
from measure import hint_of, measure, scenario_argument, status_of

scenario = scenario_argument()
STATUS = {"working": "in_progress", "completed": "completed"}
FILE = {"id": "file-1", "object": "vector_store.file", "vector_store_id": "vs-1", "created_at": 1, "usage_bytes": 0, "last_error": None}
state = {"run": None, "answers": 0}


def answer():
    hint = hint_of(scenario, state["answers"])
    state["answers"] += 1
    headers = {"content-type": "application/json"}
    if hint is not None:
        headers["openai-poll-after-ms"] = hint
    return headers, json.dumps({**FILE, "status": STATUS[status_of(scenario, state["run"])]}).encode()


def take_down(request):
    if state["run"] is not None:
        state["run"].sent(request.method)


http_client = httpx2.Client(event_hooks={"request": [take_down]})
client = OpenAI(api_key="none", base_url=f"{Loopback(answer).url}/v1", max_retries=0, http_client=http_client)


def once(run):
    run.restart()
    state.update(run=run, answers=0)
    try:
        client.vector_stores.files.poll("file-1", vector_store_id="vs-1")
        run.end("result")
    except Exception as error:
        run.end_with_error(error)
    state["run"] = None


def request():
    client.vector_stores.files.with_raw_response.retrieve("file-1", vector_store_id="vs-1").parse()  # as the helper asks


measure("python/openai_poll", "openai", scenario, once, request)
