-- How far the current run is: one row.
--
-- generation counts from 0; in mode async it is what the committed nodes would fill.
SELECT n.nodes,
       n.good,
       n.drafts,
       n.best_score,
       floor(n.nodes / s.generation_size) AS generation
FROM run.settings s
CROSS JOIN (
  SELECT count(*)                                    AS nodes,
         count(*) FILTER (WHERE NOT is_buggy)        AS good,
         count(*) FILTER (WHERE operator = 'draft')  AS drafts,
         max(signed_score)                           AS best_score
  FROM run.nodes) n
