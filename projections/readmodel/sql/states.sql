-- The last reported states of channels of the hubs $2, which the query HubsWithStates returned. Not every hub tells that it abandons a command.
SELECT hub.id, hub.site_id, hub.registered_at, hub.connected_when_added, presence.online, presence.since,
    device.device_id, coalesce(label.name, nullif(device.name, '')), device.manufacturer, device.model, label.room, device.available_since, device.available_logged,
    channel.key, channel.endpoint, channel.kind, channel.unit, channel.readable, channel.writable, channel.capabilities, channel.available,
    channel.value, channel.standing, channel.observed_at, channel.desired, channel.desired_at, channel.status, channel.changed_at, channel.basis,
    channel.observed_logged, channel.changed_logged, channel.desired_logged,
    state.certain AND device.certain AND state.epoch = hub.epoch
        AND NOT channel.unsure AND NOT (channel.status = 'pending' AND channel.desired_logged < extract(epoch FROM now() - interval '30 seconds') * 1e9)
FROM hubs hub
JOIN reported_hubs state ON state.hub_id = hub.id
    AND (state.epoch = hub.epoch OR position(state.epoch || ':' IN hub.log_former) > 0)
-- Hub by hub and by their keys, whatever the planner knows of the tables: no channel of another hub is looked at.
CROSS JOIN LATERAL (
    SELECT *
    FROM reported_channels row
    WHERE row.hub_id = hub.id
        AND ($3::text IS NULL OR row.key = $3)
        AND ($4::text IS NULL OR row.value = $4)
        AND ($5::text IS NULL OR row.status = $5)
        AND ($6::boolean IS NULL OR row.available = $6)
        -- By the cloud's clock: a hub's clock may be wrong. What is known from a read may have been reported long before it.
        AND ($7::timestamptz IS NULL OR (row.observed_at IS NOT NULL AND row.observed_logged < extract(epoch FROM $7::timestamptz) * 1e9)
            OR (row.basis = 'read' AND row.observed_at < $7))
        AND (row.hub_id, row.device_id, row.key, row.endpoint) > ($8, $9::bigint, $10::text, $11::bigint)
    ORDER BY row.device_id, row.key, row.endpoint
    LIMIT $12
) channel
CROSS JOIN LATERAL (
    SELECT * FROM reported_devices row WHERE row.hub_id = hub.id AND row.device_id = channel.device_id OFFSET 0
) device
LEFT JOIN device_labels label ON label.hub_id = hub.id AND label.device_id = device.device_id AND label.org_id = hub.org_id
LEFT JOIN hub_presence presence ON presence.hub_id = hub.id
WHERE hub.org_id = $1 AND hub.id = ANY ($2::text[])
ORDER BY hub.id, channel.device_id, channel.key, channel.endpoint
LIMIT $12
