"""Runs every Python scenario of scenarios.json (or only those whose name contains --only) and writes the three tables.

    python drive.py PACKAGES OUT [--only TEXT]

PACKAGES has the two environments `venv-mcp` (the SDK 1.x) and `venv-rest` (everything else). Rows of scenarios that are not run now stay in
the tables as they are. What the columns mean is in ../README.md.
"""

import csv
import json
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEAD = ["program", "package", "version", "scenario"]
COLUMNS = {
    "sends.csv": [*HEAD, "run", "n", "method", "at_ms"],
    "runs.csv": [*HEAD, "run", "polls", "total_ms", "gap_median_ms", "gap_min_ms", "gap_max_ms", "abort_at_ms", "abort_latency_ms"]
    + ["cancelled_notices", "tasks_cancel", "polls_after_abort", "ending", "error", "warnings"],
    "calibration.csv": [*HEAD, "kind", "wait_ms", "samples", "median_ms", "min_ms", "max_ms"],
}
# What sends.csv keeps: of runs with more than LONG sends only the first one, and of that the first SENDS_KEPT.
LONG = 30
SENDS_KEPT = 60
# What counts as a poll, per program.
POLL = {
    "python/mcp_poll": "tasks/get",
    "python/fastmcp_poll": "tasks/get",
    "python/openai_poll": "GET",
    "python/botocore_wait": "DescribeTable",
}


def read_tables(folder):
    tables = {}
    for file, columns in COLUMNS.items():
        tables[file] = []
        if (folder / file).exists():
            with open(folder / file, newline="") as text:
                reader = csv.DictReader(text)
                if reader.fieldnames != columns:
                    sys.exit(f"{folder / file} has the columns {reader.fieldnames}, and these programs write {columns}")
                tables[file] = list(reader)
    return tables


def write_tables(folder, tables, order):
    folder.mkdir(parents=True, exist_ok=True)
    for file, columns in COLUMNS.items():
        with open(folder / file, "w", newline="") as text:
            writer = csv.DictWriter(text, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(sorted(tables[file], key=lambda row: (order[row["scenario"]], row["version"])))


def replace(tables, lines):
    """Puts the rows of one program's output in place of those that the tables have for the same scenario, package and version."""
    head = {column: lines[0][column] for column in HEAD}
    for file in COLUMNS:
        tables[file] = [row for row in tables[file] if any(row[column] != head[column] for column in HEAD)]
    runs = []
    for line in lines:
        if "calibration" in line:
            row = line["calibration"]
            times = {f"{name}_ms": fixed(row[name]) for name in ("median", "min", "max")}
            tables["calibration.csv"].append({**head, **{name: row[name] for name in ("kind", "wait_ms", "samples")}, **times})
            continue
        runs.append({**head, "run": line["run"], **summary(line, POLL[head["program"]])})
        kept = SENDS_KEPT if len(line["sends"]) <= LONG or line["run"] == 1 else 0
        for n, (method, at) in enumerate(line["sends"][:kept], 1):
            tables["sends.csv"].append({**head, "run": line["run"], "n": n, "method": method, "at_ms": fixed(at)})
    tables["runs.csv"] += runs
    return runs


def summary(line, poll_method):
    polls = [at for method, at in line["sends"] if method == poll_method]
    gaps = [later - earlier for earlier, later in zip(polls, polls[1:])]
    methods = [method for method, _ in line["sends"]]
    ended, aborted = line["ended"], line["aborted"]
    return {
        "polls": len(polls),
        "total_ms": fixed(ended["at"]),
        "gap_median_ms": fixed(statistics.median(gaps)) if gaps else "",
        "gap_min_ms": fixed(min(gaps)) if gaps else "",
        "gap_max_ms": fixed(max(gaps)) if gaps else "",
        "abort_at_ms": "" if aborted is None else fixed(aborted),
        "abort_latency_ms": "" if aborted is None or ended["ending"] == "horizon" else fixed(ended["at"] - aborted),
        "cancelled_notices": methods.count("notifications/cancelled"),
        "tasks_cancel": methods.count("tasks/cancel"),
        "polls_after_abort": "" if aborted is None else sum(at > aborted for at in polls),
        "ending": ended["ending"],
        "error": ended["error"],
        "warnings": "",
    }


def fixed(ms):
    return f"{ms:.3f}"


def output_of(packages, scenario):
    environment = "venv-mcp" if scenario["program"] == "python/mcp_poll" else "venv-rest"
    command = [packages / environment / "bin" / "python", HERE.parent / f"{scenario['program']}.py", json.dumps(scenario)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def main():
    arguments = sys.argv[1:]
    if len(arguments) not in (2, 4) or (len(arguments) == 4 and arguments[2] != "--only"):
        sys.exit("usage: drive.py PACKAGES OUT [--only TEXT]")
    packages, out = Path(arguments[0]).resolve(), Path(arguments[1])
    only = arguments[3] if len(arguments) == 4 else ""
    plan = json.loads((HERE.parent / "scenarios.json").read_text())
    expected = {entry["program"]: entry["packages"][0] for entry in plan["programs"]}
    tables = read_tables(out)
    for scenario in plan["scenarios"]:
        if not scenario["program"].startswith("python/") or only not in scenario["name"]:
            continue
        lines = output_of(packages, scenario)
        package = expected[scenario["program"]]
        found = (lines[0]["package"], lines[0]["version"])
        if found != (package["package"], package["version"]):
            sys.exit(f"{scenario['name']}: installed is {found}, and scenarios.json says {package}")
        runs = replace(tables, lines)
        total = sorted(float(run["total_ms"]) for run in runs)[len(runs) // 2]
        polls = " ".join(str(run["polls"]) for run in runs)
        print(f"{scenario['name']} {found[1]}: {polls} polls, {total:.3f} ms, {runs[0]['ending']}", file=sys.stderr)
    write_tables(out, tables, {scenario["name"]: index for index, scenario in enumerate(plan["scenarios"])})


main()
