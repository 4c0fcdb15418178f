-- Settings of the current run that policies read: its row of evo.run_settings.
SELECT * FROM evo.run_settings WHERE run_id = current_run()
