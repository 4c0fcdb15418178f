-- evo.board_runtime limited to the current run.
SELECT * FROM evo.board_runtime WHERE run_id = current_run()
