-- The board of the current run: how often each fault, result state and operator occurred.
SELECT 'error' AS kind, error_signature AS name, nodes FROM run.board_repeated_errors
UNION ALL
SELECT 'status', status, nodes FROM run.board_status_counts
UNION ALL
SELECT 'operator', operator, nodes FROM run.board_operator_counts
