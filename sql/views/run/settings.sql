-- Settings of the current run that policies read: one row. A setting that was not given has its default, except
-- debug_depth, whose default is the policy's own, and debug_seconds, which has no limit then.
SELECT run_id,
       task_id,
       seed,
       steps_limit,
       COALESCE(option_number(options, 'generation_size'), 5)          AS generation_size,
       COALESCE(option_number(options, 'islands'), 1)                  AS islands,
       COALESCE(option_number(options, 'drafts'), 5)                   AS drafts,
       option_number(options, 'debug_depth')                           AS debug_depth,
       option_number(options, 'debug_seconds')                         AS debug_seconds,
       COALESCE(option_number(options, 'debug_probability'), 0.5)      AS debug_probability,
       COALESCE(option_number(options, 'crossover_probability'), 0.5)  AS crossover_probability,
       COALESCE(option_number(options, 'crossover_after'), 2)          AS crossover_after,
       COALESCE(option_number(options, 'fresh_draft_probability'), 0)  AS fresh_draft_probability,
       COALESCE(option_number(options, 'quality_weight'), 1)           AS quality_weight,
       COALESCE(option_number(options, 'progress_weight'), 0.4)        AS progress_weight,
       COALESCE(option_number(options, 'novelty_weight'), 0.25)        AS novelty_weight,
       COALESCE(option_number(options, 'selection_temperature'), 1)    AS selection_temperature,
       COALESCE(option_number(options, 'exploration'), sqrt(2))        AS exploration
FROM evo.runs
WHERE run_id = current_run()
