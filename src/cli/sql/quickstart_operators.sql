SELECT operator,
       count(*)                                       AS programs,
       count(*) FILTER (WHERE is_buggy)               AS failed,
       count(*) FILTER (WHERE delta_vs_parent > 0)    AS gains,
       round(max(delta_vs_parent), 4)                 AS largest_gain,
       round(sum(sandbox_seconds), 1)                 AS seconds
FROM run.nodes
GROUP BY operator
ORDER BY programs DESC
