-- evo.board_operator_counts limited to the current run.
SELECT * FROM evo.board_operator_counts WHERE run_id = current_run()
