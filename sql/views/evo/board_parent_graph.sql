-- One row a node: the list of its parents, which is empty for a draft, and how many children it has.
SELECT n.run_id,
       n.task_id,
       n.node_id,
       n.step,
       n.operator,
       CASE WHEN n.parent2_id IS NOT NULL THEN make_array(n.parent_id, n.parent2_id)
            WHEN n.parent_id IS NOT NULL  THEN make_array(n.parent_id)
            ELSE arrow_cast(make_array(), 'List(Utf8)') END AS parents,
       COALESCE(c.children, 0) AS children
FROM evo.nodes n
LEFT JOIN (SELECT parent_id, count(*) AS children FROM evo.edges GROUP BY parent_id) c ON c.parent_id = n.node_id
