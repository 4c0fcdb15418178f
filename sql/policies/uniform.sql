-- Every good node is as likely a parent as any other: the baseline that selection has to beat.
--
-- Failures, drafts and crossovers as in openmle_evo.
SELECT o.operator,
       o.operator_weight,
       c.node_id AS parent_id,
       1.0       AS weight,
       1         AS priority
FROM run.operators o CROSS JOIN run.candidates c
WHERE o.arity > 0
UNION ALL SELECT operator, operator_weight, NULL, 1, 1 FROM run.operators WHERE arity = 0
UNION ALL SELECT * FROM run.repairs
UNION ALL SELECT * FROM run.drafts
