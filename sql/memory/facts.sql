-- What the memory model is told of a node: the program, its outcome, and what was changed against each of its parents.
--
-- Parameter: $node_id. One row a parent, the first parent first; a node without parents has one row with NULL for them.
SELECT n.operator,
       sanitize_program(n.code)                       AS code,
       sanitize_output(n.plan)                        AS plan,
       n.status,
       CASE WHEN NOT n.is_buggy THEN n.score END      AS score,
       n.delta_vs_parent,
       n.error_signature,
       sanitize_output(n.error)                       AS error,
       n.method_family,
       t.description,
       t.metric,
       t.higher_is_better,
       p.node_id                                      AS parent_id,
       p.status                                       AS parent_status,
       CASE WHEN NOT p.is_buggy THEN p.score END      AS parent_score,
       p.error_signature                              AS parent_error_signature,
       p.method_family                                AS parent_method_family,
       unified_diff(sanitize_program(p.code), sanitize_program(n.code))                   AS changes
FROM evo.nodes n
JOIN gym.tasks t ON t.task_id = n.task_id
LEFT JOIN evo.edges e ON e.child_id = n.node_id
LEFT JOIN evo.nodes p ON p.node_id = e.parent_id
WHERE n.node_id = $node_id
ORDER BY e.role
