-- evo.selection_trace limited to the current run.
SELECT * FROM evo.selection_trace WHERE run_id = current_run()
