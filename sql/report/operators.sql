-- One row an operator of a run: what it made, what it gained and what it cost. Unknown tokens and costs stay NULL.
-- Parameters: $run.
SELECT n.operator,
       count(*)                                       AS programs,
       count(*) FILTER (WHERE n.is_buggy)             AS failed,
       count(*) FILTER (WHERE n.delta_vs_parent > 0)  AS gains,
       count(*) FILTER (WHERE h.is_incumbent)         AS new_bests,
       avg(n.delta_vs_parent)                         AS mean_gain,
       max(n.delta_vs_parent)                         AS largest_gain,
       first_value(n.score ORDER BY h.signed_score DESC NULLS LAST, n.step) FILTER (WHERE NOT n.is_buggy) AS best_score,
       sum(n.tokens_prompt)                           AS tokens_prompt,
       sum(n.tokens_completion)                       AS tokens_completion,
       sum(n.cost_usd)                                AS cost_usd,
       sum(n.model_seconds)                           AS model_seconds,
       sum(n.sandbox_seconds)                         AS sandbox_seconds
FROM evo.nodes n
JOIN evo.board_score_history h ON h.node_id = n.node_id AND h.run_id = $run
WHERE n.run_id = $run
GROUP BY n.operator
ORDER BY programs DESC, n.operator
