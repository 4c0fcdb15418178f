-- The board of the current run: one row of what is one value.
SELECT n.nodes,
       b.node_id       AS best_node,
       CASE t.higher_is_better WHEN TRUE THEN b.signed_score WHEN FALSE THEN -b.signed_score END AS best_score,
       b.method_family AS best_family,
       d.mean_gain,
       COALESCE(r.sandbox_seconds, 0)      AS sandbox_seconds,
       COALESCE(r.mean_sandbox_seconds, 0) AS mean_sandbox_seconds,
       COALESCE(r.model_seconds, 0)        AS model_seconds,
       COALESCE(r.mean_model_seconds, 0)   AS mean_model_seconds
FROM (SELECT count(*) AS nodes FROM run.nodes) n
LEFT JOIN run.board_current_best b ON TRUE
LEFT JOIN gym.tasks t ON t.task_id = b.task_id
LEFT JOIN run.board_recent_delta_trend d ON TRUE
LEFT JOIN run.board_runtime r ON TRUE
