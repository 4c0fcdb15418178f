-- What a prompt says of the nodes it shows, without official scores in what they say and printed. Rows lie in the order of their commits, so the
-- commits lead straight to the long texts, however much history lies around them. What the memory model says of them comes from
-- sql/memory.
--
-- Parameters: $seq0 to $seq7, the commits of the nodes, and $node0 to $node7, their ids.
SELECT node_id, operator, sanitize_program(code) AS code, sanitize_output(plan) AS plan, status, is_buggy, score, signed_score, error_class, error_signature,
       sanitize_output(error) AS error, method_family, sandbox_seconds, delta_vs_parent
FROM evo.nodes_versions
WHERE _seq IN ($seq0, $seq1, $seq2, $seq3, $seq4, $seq5, $seq6, $seq7)
  AND node_id IN ($node0, $node1, $node2, $node3, $node4, $node5, $node6, $node7)
