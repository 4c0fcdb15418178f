-- evo.board_parent_graph limited to the current run.
SELECT * FROM evo.board_parent_graph WHERE run_id = current_run()
