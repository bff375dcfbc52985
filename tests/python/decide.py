"""Decisions of an exported policy: `decide.py POLICY.py STEPS`, where a step is a line of JSON."""

import importlib.util
import json
import sys

spec = importlib.util.spec_from_file_location("policy", sys.argv[1])
policy = importlib.util.module_from_spec(spec)
sys.modules["policy"] = policy
spec.loader.exec_module(policy)

state = policy.State()
with open(sys.argv[2], encoding="utf-8") as steps:
    for line in steps:
        step = json.loads(line)
        if step["saw"] == "created":
            state = policy.State()
        hint = step.get("hint", policy.ABSENT)
        found = policy.decide(state, step["saw"], hint, int(step["u"]), step["is_new"])
        if found.kind == "wait":
            print("wait", found.wait_ns)
        elif found.kind == "end":
            print("end", found.why)
        else:
            print(found.kind)
