-- One row a node of the current run that can be a parent: evo.candidates limited to it.
SELECT * FROM evo.candidates WHERE run_id = current_run()
