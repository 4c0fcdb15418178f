-- A draft, as a row of a policy: of priority 2 while drafts are due, of priority 0 (when nothing else can be done) after.
--
-- Due are the run's drafts, and one fresh draft for every debug chain that ended because it repeated its fault, less the
-- drafts that are made or under way.
SELECT 'draft'                                                              AS operator,
       1.0                                                                  AS operator_weight,
       CAST(NULL AS VARCHAR)                                                AS parent_id,
       1.0                                                                  AS weight,
       CASE WHEN s.drafts + e.chains > p.drafts + f.drafts THEN 2 ELSE 0 END AS priority
FROM run.settings s
CROSS JOIN run.progress p
CROSS JOIN (
  SELECT count(*) AS chains
  FROM run.nodes n
  JOIN run.nodes before ON before.node_id = n.parent_id
  WHERE n.operator = 'debug' AND n.is_buggy AND n.error_signature = before.error_signature) e
CROSS JOIN (SELECT count(*) AS drafts FROM run.in_flight WHERE operator = 'draft') f
