-- One row an experience card of the current run: evo.cards limited to it.
SELECT * FROM evo.cards WHERE run_id = current_run()
