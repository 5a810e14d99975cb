-- The hubs that must be asked for their devices, because not everything that they reported is known, or the outcome of a command: it is pending for
-- longer than in states.sql, or its status is a guess.
SELECT hub_id FROM reported_hubs WHERE NOT certain
UNION
SELECT hub_id FROM reported_devices WHERE NOT certain
UNION
SELECT hub_id FROM reported_channels
WHERE (unsure OR status = 'pending') AND (unsure OR desired_logged < extract(epoch FROM now() - interval '30 seconds') * 1e9)
