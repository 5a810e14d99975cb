-- The channels of the devices of which some channel may need attention. Rows as in states.sql.
SELECT hub.id, hub.site_id, hub.registered_at, hub.connected_when_added, presence.online, presence.since,
    device.device_id, coalesce(label.name, nullif(device.name, '')), device.manufacturer, device.model, label.room, device.available_since, device.available_logged,
    channel.key, channel.endpoint, channel.kind, channel.unit, channel.readable, channel.writable, channel.capabilities, channel.available,
    channel.value, channel.standing, channel.observed_at, channel.desired, channel.desired_at, channel.status, channel.changed_at, channel.basis,
    channel.observed_logged, channel.changed_logged, channel.desired_logged,
    state.certain AND device.certain AND state.epoch = hub.epoch
FROM (
    SELECT DISTINCT reported.hub_id, reported.device_id
    FROM hubs hub
    JOIN reported_channels reported ON reported.hub_id = hub.id
    WHERE hub.org_id = $1
        AND ($2::text = '' OR hub.site_id = $2)
        AND ($3::text = '' OR hub.id = $3)
        AND reported.suspect
) device_of
JOIN hubs hub ON hub.id = device_of.hub_id
JOIN reported_hubs state ON state.hub_id = hub.id
    AND (state.epoch = hub.epoch OR position(state.epoch || ':' IN hub.log_former) > 0)
-- By their keys, whatever the planner knows of tables that a flood has filled a moment ago.
CROSS JOIN LATERAL (
    SELECT * FROM reported_devices row WHERE row.hub_id = device_of.hub_id AND row.device_id = device_of.device_id OFFSET 0
) device
CROSS JOIN LATERAL (
    SELECT * FROM reported_channels row WHERE row.hub_id = device_of.hub_id AND row.device_id = device_of.device_id OFFSET 0
) channel
LEFT JOIN device_labels label ON label.hub_id = hub.id AND label.device_id = device.device_id AND label.org_id = hub.org_id
LEFT JOIN hub_presence presence ON presence.hub_id = hub.id
WHERE hub.org_id = $1
ORDER BY hub.id, channel.device_id, channel.key, channel.endpoint
LIMIT $4
