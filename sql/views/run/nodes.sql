-- One row a node of the current run: evo.nodes limited to it.
SELECT * FROM evo.nodes WHERE run_id = current_run()
