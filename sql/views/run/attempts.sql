-- One row an attempt of the current run: evo.attempts limited to it.
SELECT * FROM evo.attempts WHERE run_id = current_run()
