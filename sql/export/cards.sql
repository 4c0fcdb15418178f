-- The cards of the current run in the order of its steps, for a document in the shape of the published search.
--
-- fitness is the validation score where it is valid.
SELECT c.node_id,
       c.step,
       c.generation,
       c.operator,
       g.parents,
       c.score,
       CASE t.higher_is_better WHEN TRUE THEN c.signed_score WHEN FALSE THEN -c.signed_score END AS fitness,
       c.status,
       c.is_buggy,
       c.sandbox_seconds,
       c.model_seconds,
       c.total_seconds,
       c.cost_usd,
       c.tokens_prompt,
       c.tokens_completion,
       c.tokens_total,
       c.imports,
       c.method_family,
       c.family_count_before,
       c.is_new_direction,
       c.novelty,
       c.delta_vs_parent,
       c.error_signature,
       c.rank,
       c.is_current_best,
       c.selection_utility,
       c.plan,
       COALESCE(c.parent_comparison_experience, c.error) AS analysis,
       c.method_overview,
       c.parent_comparison_experience
FROM run.cards c
JOIN run.board_parent_graph g ON g.node_id = c.node_id
LEFT JOIN gym.tasks t ON t.task_id = c.task_id
ORDER BY c.step
