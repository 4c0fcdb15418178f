-- evo.board_selection_weights limited to the current run.
SELECT * FROM evo.board_selection_weights WHERE run_id = current_run()
