-- One row a job on the validation data: what its program printed, as a model may be shown it. Official scores are removed. Of a long
-- output it is the last part, from its first whole line on: half a line may be a number without its name.
SELECT job_id,
       attempt_id,
       run_id,
       task_id,
       status,
       sanitize_output(CASE WHEN octet_length(stdout_head) + octet_length(stdout_tail) < stdout_bytes
                            THEN substr(stdout_tail, strpos(stdout_tail, chr(10)) + 1)
                            ELSE concat(stdout_head, stdout_tail) END) AS output,
       stdout_bytes,
       finished_at
FROM sandbox.jobs
WHERE split = 'validation'
