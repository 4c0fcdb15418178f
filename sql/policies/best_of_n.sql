-- Best of n: independent drafts and nothing else.
SELECT 'draft' AS operator, CAST(NULL AS VARCHAR) AS parent_id
FROM run.settings
