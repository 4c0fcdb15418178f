-- evo.board_family_coverage limited to the current run.
SELECT * FROM evo.board_family_coverage WHERE run_id = current_run()
