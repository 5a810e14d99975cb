WITH devices AS (DELETE FROM reported_devices WHERE hub_id = ANY ($1::text[])),
    channels AS (DELETE FROM reported_channels WHERE hub_id = ANY ($1::text[]))
DELETE FROM reported_hubs WHERE hub_id = ANY ($1::text[])
