UPDATE {schema}.checkpoints SET position = $3, commit_term = $4, commit_time = $5, built = built OR $6, updated_at = now()
WHERE journal = $1 AND position = $2
