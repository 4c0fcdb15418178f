-- One row an attempt of a run that asked a model: what its requests spent, those to the memory model for its prompt included. A request
-- that was turned away spent nothing.
--
-- unknown_tokens and unknown_costs count requests that may have spent something that nobody knows: without a count of tokens or
-- a price, or with a count that cannot be right. What is known of them is in tokens and cost_usd (bench.requests).
SELECT run_id,
       attempt_id,
       sum(tokens)         AS tokens,
       sum(unknown_tokens) AS unknown_tokens,
       sum(cost_usd)       AS cost_usd,
       sum(unknown_costs)  AS unknown_costs
FROM bench.requests
GROUP BY run_id, attempt_id
