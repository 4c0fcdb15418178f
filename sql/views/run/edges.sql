-- One row a parent-child link of the current run: evo.edges limited to it.
SELECT * FROM evo.edges WHERE run_id = current_run()
