-- One row a node of the current run that has children: how many, and how they scored (higher is better).
--
-- variance is the population variance of the valid scores; with one valid score it is not known, so NULL.
SELECT e.parent_id                                                              AS node_id,
       count(*)                                                                 AS children,
       count(c.signed_score)                                                    AS scored_children,
       avg(c.signed_score)                                                      AS mean_score,
       max(c.signed_score)                                                      AS best_score,
       CASE WHEN count(c.signed_score) > 1 THEN var_pop(c.signed_score) END     AS variance
FROM run.edges e
JOIN run.nodes c ON c.node_id = e.child_id
GROUP BY e.parent_id
