-- SHOW MODELS: generators, their prices, and until when they are paused.
SELECT name, provider, origin, profile, endpoint, model, usd_per_million_prompt_tokens, usd_per_million_completion_tokens,
       paused_until, problem
FROM system.models
ORDER BY name
