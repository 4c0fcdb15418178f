-- evo.board_rank limited to the current run.
SELECT * FROM evo.board_rank WHERE run_id = current_run()
