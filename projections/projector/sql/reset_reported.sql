WITH devices AS (DELETE FROM reported_devices WHERE hub_id IN (SELECT hub_id FROM reported_hubs WHERE journal = $1)),
    channels AS (DELETE FROM reported_channels WHERE hub_id IN (SELECT hub_id FROM reported_hubs WHERE journal = $1))
DELETE FROM reported_hubs WHERE journal = $1
