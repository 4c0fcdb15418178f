-- evo.board_underexplored_families limited to the current run.
SELECT * FROM evo.board_underexplored_families WHERE run_id = current_run()
