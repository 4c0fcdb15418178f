-- evo.board_repeated_errors limited to the current run.
SELECT * FROM evo.board_repeated_errors WHERE run_id = current_run()
