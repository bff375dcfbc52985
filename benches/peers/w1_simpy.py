"""W1 on SimPy: a process per task, a resource per server.

The same distributions as in src/lib.rs, drawn from Python's own generator. Times are seconds.
"""

import json
import random
import sys

import simpy

HORIZON, MEAN_DURATION, DELAY, SERVICE, SERVERS = 600.0, 60.0, 0.005, 0.0002, 100


def task(env, store, rng, seen):
    """One loop, from the arrival of its task to the answer that tells the end."""
    end = env.now + rng.expovariate(1 / MEAN_DURATION)
    while True:
        yield env.timeout(rng.uniform(0.9, 1.1) + DELAY)
        with store.request() as turn:
            yield turn
            yield env.timeout(SERVICE)
        seen["polls"] += 1
        ended = env.now >= end
        yield env.timeout(DELAY)
        if ended:
            seen["latencies"].append(env.now - end)
            return


def arrivals(env, tasks, seen):
    rng = random.Random(1)
    stores = [simpy.Resource(env) for _ in range(SERVERS)]
    for _ in range(tasks):
        yield env.timeout(rng.expovariate(tasks / HORIZON))
        env.process(task(env, rng.choice(stores), rng, seen))


def main():
    env = simpy.Environment()
    seen = {"polls": 0, "latencies": []}
    env.process(arrivals(env, int(sys.argv[1]), seen))
    env.run()
    latencies = seen["latencies"]
    mean_ms = 1e3 * sum(latencies) / len(latencies)
    print(json.dumps({"tasks": len(latencies), "polls": seen["polls"], "latency_mean_ms": mean_ms}))


main()
