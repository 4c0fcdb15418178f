-- One row a node: its experience card, the facts that selection, memory and people judge it by. Six groups of columns:
--
-- identity and lineage (node_id to parent2_id), outcome (status to self_reported_score), resources (tokens_prompt to
-- total_seconds; NULL where unknown), method (imports to duplicate_of), signals of the search (family_count_before to
-- selection_utility) and evidence in words (plan to error).
--
-- rank, is_current_best and selection_utility are those of now: of the snapshot that is read. The utility is that of
-- evo.board_selection_weights, NULL for a node that is not drawn from. The two summaries are NULL until a memory model has made them.
-- plan and error hold no official score. What a successful program printed is in sandbox.outputs.
SELECT n.node_id,
       n.run_id,
       n.task_id,
       n.step,
       n.generation,
       n.island,
       n.operator,
       n.parent_id,
       n.parent2_id,

       n.status,
       n.is_buggy,
       n.score,
       n.signed_score,
       n.score_source,
       n.self_reported_score,

       n.tokens_prompt,
       n.tokens_completion,
       n.tokens_prompt + n.tokens_completion AS tokens_total,
       n.cost_usd,
       n.model_seconds,
       n.sandbox_seconds,
       n.model_seconds + n.sandbox_seconds   AS total_seconds,

       n.imports,
       n.method_family,
       n.duplicate_of,

       n.family_count_before,
       n.family_count_before = 0             AS is_new_direction,
       novelty(n.family_count_before)        AS novelty,
       n.delta_vs_parent,
       n.error_class,
       n.error_signature,
       n.admitted,
       n.rank,
       COALESCE(n.rank = 1, FALSE)           AS is_current_best,
       w.utility                             AS selection_utility,

       sanitize_output(n.plan)               AS plan,
       s.method_overview,
       s.parent_comparison_experience,
       sanitize_output(n.error)              AS error
FROM (
  SELECT *,
         CASE WHEN NOT is_buggy AND signed_score IS NOT NULL
              THEN row_number() OVER (PARTITION BY run_id, task_id, NOT is_buggy AND signed_score IS NOT NULL
                                      ORDER BY signed_score DESC, step) END AS rank
  FROM evo.nodes) n
LEFT JOIN evo.board_selection_weights w ON w.node_id = n.node_id AND w.run_id = n.run_id
LEFT JOIN evo.summaries s ON s.node_id = n.node_id
