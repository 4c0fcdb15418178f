-- One row a node that can be a parent: it has a valid score and is the first of its program.
SELECT run_id,
       task_id,
       node_id,
       step,
       generation,
       island,
       operator,
       parent_id,
       parent2_id,
       status,
       score,
       signed_score,
       delta_vs_parent,
       method_family,
       family_count_before,
       admitted,
       is_buggy,
       error_signature,
       sandbox_seconds
FROM evo.nodes
WHERE NOT is_buggy AND signed_score IS NOT NULL AND duplicate_of IS NULL
