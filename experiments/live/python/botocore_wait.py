"""Drives a botocore waiter, `table_exists` of DynamoDB, against a loopback HTTP server.

    python botocore_wait.py SCENARIO      (one object of scenarios.json)

The delay (`client_default_ms`) and the number of attempts (`max_attempts`) go to the waiter as its `WaiterConfig`. The server answers at once. A
run starts with `wait`, and so does the table's clock; it ends when `wait` returns. Taken down: every request before it is sent.
"""

import json

import botocore.session
from botocore.config import Config

from loopback import Loopback
from measure import measure, scenario_argument, status_of

scenario = scenario_argument()
STATUS = {"working": "CREATING", "completed": "ACTIVE"}
state = {"run": None}


def answer():
    table = {"TableName": "work", "TableStatus": STATUS[status_of(scenario, state["run"])]}
    return {"content-type": "application/x-amz-json-1.0"}, json.dumps({"Table": table}).encode()


def take_down(model, **_):
    if state["run"] is not None:
        state["run"].sent(model.name)


client = botocore.session.get_session().create_client(
    "dynamodb",
    region_name="us-east-1",
    endpoint_url=Loopback(answer).url,
    aws_access_key_id="none",
    aws_secret_access_key="none",
    config=Config(retries={"total_max_attempts": 1}),
)
client.meta.events.register("before-call.dynamodb.*", take_down)


def once(run):
    waiter = client.get_waiter("table_exists")
    settings = {"Delay": scenario["client_default_ms"] / 1000, "MaxAttempts": scenario["max_attempts"]}
    run.restart()
    state["run"] = run
    try:
        waiter.wait(TableName="work", WaiterConfig=settings)
        run.end("result")
    except Exception as error:
        run.end_with_error(error)
    state["run"] = None


def request():
    client.describe_table(TableName="work")


measure("python/botocore_wait", "botocore", scenario, once, request)
