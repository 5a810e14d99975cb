WITH added AS (INSERT INTO {schema}.checkpoints (journal) VALUES ($1) ON CONFLICT DO NOTHING RETURNING position, commit_term, commit_time, built)
SELECT position, commit_term, commit_time, built FROM added
UNION ALL
SELECT position, commit_term, commit_time, built FROM {schema}.checkpoints WHERE journal = $1
