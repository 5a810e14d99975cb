WITH devices AS (DELETE FROM {schema}.devices),
    channels AS (DELETE FROM {schema}.channels),
    hubs AS (DELETE FROM {schema}.hubs)
UPDATE {schema}.checkpoints SET position = 0, commit_term = 0, commit_time = 0, built = false, updated_at = now()
