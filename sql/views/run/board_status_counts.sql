-- evo.board_status_counts limited to the current run.
SELECT * FROM evo.board_status_counts WHERE run_id = current_run()
