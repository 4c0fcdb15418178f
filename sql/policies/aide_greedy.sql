-- Greedy search in the manner of AIDE: first the drafts, then the best node is improved, or with debug_probability a
-- failed program is debugged, any of them, up to debug_depth (3 when it is not set) steps in a chain.
(SELECT 'improve'               AS operator,
        1 - s.debug_probability AS operator_weight,
        c.node_id               AS parent_id,
        1.0                     AS weight,
        1                       AS priority
 FROM run.settings s CROSS JOIN run.candidates c
 ORDER BY c.signed_score DESC, c.step
 LIMIT 1)
UNION ALL
SELECT 'debug', s.debug_probability, f.node_id, 1.0, 1
FROM run.settings s CROSS JOIN run.failures f
WHERE f.is_debuggable AND f.depth < COALESCE(s.debug_depth, 3)
UNION ALL SELECT * FROM run.drafts
