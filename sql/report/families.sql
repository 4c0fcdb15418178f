-- One row a method family of a run: how often it was tried, how it did, and what it gained.
-- Parameters: $run.
SELECT n.method_family,
       count(*)                                       AS programs,
       count(*) FILTER (WHERE n.is_buggy)             AS failed,
       count(*) FILTER (WHERE n.delta_vs_parent > 0)  AS gains,
       count(*) FILTER (WHERE h.is_incumbent)         AS new_bests,
       avg(n.score) FILTER (WHERE NOT n.is_buggy)     AS mean_score,
       first_value(n.score ORDER BY h.signed_score DESC NULLS LAST, n.step) FILTER (WHERE NOT n.is_buggy) AS best_score,
       min(n.step)                                    AS first_step,
       max(n.step)                                    AS last_step,
       sum(n.sandbox_seconds)                         AS sandbox_seconds
FROM evo.nodes n
JOIN evo.board_score_history h ON h.node_id = n.node_id AND h.run_id = $run
WHERE n.run_id = $run
GROUP BY n.method_family
ORDER BY max(h.signed_score) DESC NULLS LAST, n.method_family
