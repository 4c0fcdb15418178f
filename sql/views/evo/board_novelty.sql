-- One row a node: how new its method family was when it was made. novelty is 1 for a family that the run had not seen, and less the
-- more often it had.
SELECT run_id,
       task_id,
       node_id,
       step,
       method_family,
       family_count_before,
       family_count_before = 0      AS is_new_direction,
       novelty(family_count_before) AS novelty
FROM evo.nodes
