"""Times queries over the Delta Lake tables of a store: queries_in_duckdb.py FOLDER ROUNDS QUERY… prints seconds and rows a query."""

import os
import sys
import time

import deltalake
import duckdb


def main(folder, rounds, *queries):
    connection = duckdb.connect()
    connection.execute(f"SET threads = {len(os.sched_getaffinity(0))}")
    for name in ("nodes", "edges"):
        files = deltalake.DeltaTable(f"{folder}/evo/{name}").file_uris()
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files!r})")
    for query in queries:
        best = float("inf")
        for _ in range(int(rounds)):
            started = time.perf_counter()
            table = connection.sql(query).to_arrow_table()
            best = min(best, time.perf_counter() - started)
        print(best, table.num_rows)


main(*sys.argv[1:])
