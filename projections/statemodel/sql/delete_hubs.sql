WITH devices AS (DELETE FROM {schema}.devices WHERE hub_id = ANY ($1::text[])),
    channels AS (DELETE FROM {schema}.channels WHERE hub_id = ANY ($1::text[]))
DELETE FROM {schema}.hubs WHERE hub_id = ANY ($1::text[])
