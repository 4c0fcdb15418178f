-- evo.board_novelty limited to the current run.
SELECT * FROM evo.board_novelty WHERE run_id = current_run()
