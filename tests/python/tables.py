"""Result files read as they are with pandas, polars and DuckDB: rows and types are those of the schema.

Usage: tables.py FOLDER SCHEMA, the schema being what `pollpace schema results` prints. Reads the files of the schema that are in the folder. Prints a line per
file and reader; ends with 1 where something differs.
"""

import json
import sys
from pathlib import Path

import duckdb
import pandas
import polars


def of_pandas(path):
    table = pandas.read_csv(path)
    is_ = pandas.api.types
    kinds = [("boolean", is_.is_bool_dtype), ("integer", is_.is_integer_dtype), ("number", is_.is_float_dtype), ("string", is_.is_string_dtype)]
    kind = lambda column: next(name for name, test in kinds if test(column.dtype))
    return len(table), {name: (kind(table[name]), table[name].isna().all()) for name in table}


def of_polars(path):
    table = polars.read_csv(path)

    def kind(column):
        if column.dtype == polars.Boolean:
            return "boolean"
        return "integer" if column.dtype.is_integer() else "number" if column.dtype.is_float() else "string"

    return len(table), {c.name: (kind(c), c.null_count() == len(c)) for c in table}


def of_duckdb(path):
    table = f"read_csv('{path}')"
    described = duckdb.sql(f"describe from {table}").fetchall()
    counts = ", ".join(f'count("{name}")' for name, *_ in described)
    (rows, *counts) = duckdb.sql(f"select count(*), {counts} from {table}").fetchall()[0]
    names = {"BIGINT": "integer", "DOUBLE": "number", "BOOLEAN": "boolean", "VARCHAR": "string"}
    return rows, {name: (names[kind], count == 0) for (name, kind, *_), count in zip(described, counts)}


def main(folder, schema):
    wrong = 0
    read = 0
    for resource in json.loads(Path(schema).read_text(encoding="utf-8"))["resources"]:
        path = Path(folder) / resource["path"]
        if not path.exists():
            continue
        with open(path, encoding="utf-8") as file:
            lines = sum(1 for _ in file) - 1
        fields = resource["schema"]["fields"]
        for reader in [of_pandas, of_polars, of_duckdb]:
            rows, columns = reader(path)
            faults = [f"{rows} rows, {lines} lines"] if rows != lines else []
            for field in fields:
                name = field["name"]
                # A column without a value has no type that a reader could see.
                kind, empty = columns.pop(name, ("nothing", False))
                if kind != field["type"] and not empty:
                    faults.append(f"{name} is {kind}, not {field['type']}")
            if resource["schema"].get("fieldsMatch") != "subset" and columns:
                faults.append(f"{', '.join(columns)} not in the schema")
            told = "; ".join(faults) or f"{rows} rows, {len(fields)} columns"
            print(f"{path.name} {reader.__name__}: {told}")
            wrong += len(faults)
            read += 1
    return 1 if wrong or not read else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
