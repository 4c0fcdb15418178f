-- evo.board_recent_delta_trend limited to the current run.
SELECT * FROM evo.board_recent_delta_trend WHERE run_id = current_run()
