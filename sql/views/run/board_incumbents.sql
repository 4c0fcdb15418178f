-- evo.board_incumbents limited to the current run.
SELECT * FROM evo.board_incumbents WHERE run_id = current_run()
