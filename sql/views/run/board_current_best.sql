-- evo.board_current_best limited to the current run.
SELECT * FROM evo.board_current_best WHERE run_id = current_run()
