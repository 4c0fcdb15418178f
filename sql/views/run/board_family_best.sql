-- evo.board_family_best limited to the current run.
SELECT * FROM evo.board_family_best WHERE run_id = current_run()
