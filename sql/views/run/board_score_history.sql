-- evo.board_score_history limited to the current run.
SELECT * FROM evo.board_score_history WHERE run_id = current_run()
