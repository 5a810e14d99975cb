WITH devices AS (DELETE FROM {schema}.devices WHERE hub_id IN (SELECT hub_id FROM {schema}.hubs WHERE journal = $1)),
    channels AS (DELETE FROM {schema}.channels WHERE hub_id IN (SELECT hub_id FROM {schema}.hubs WHERE journal = $1)),
    hubs AS (DELETE FROM {schema}.hubs WHERE journal = $1)
UPDATE {schema}.checkpoints SET position = 0, commit_term = 0, commit_time = 0, built = false, updated_at = now() WHERE journal = $1
