-- The last reported states of an organization's channels. Rows of another epoch than the hub's are what an earlier owner or an earlier life of the hub
-- reported; those of a former epoch of a restored log may lack what was lost. Not every hub tells that
-- it abandons a command.
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
JOIN reported_devices device ON device.hub_id = hub.id
JOIN reported_channels channel ON channel.hub_id = hub.id AND channel.device_id = device.device_id
LEFT JOIN device_labels label ON label.hub_id = hub.id AND label.device_id = device.device_id AND label.org_id = hub.org_id
LEFT JOIN hub_presence presence ON presence.hub_id = hub.id
WHERE hub.org_id = $1
    AND ($2::text IS NULL OR hub.site_id = $2)
    AND ($3::text IS NULL OR hub.id = $3)
    AND ($4::text IS NULL OR channel.key = $4)
    AND ($5::text IS NULL OR channel.value = $5)
    AND ($6::text IS NULL OR channel.status = $6)
    AND ($7::boolean IS NULL OR channel.available = $7)
    -- By the cloud's clock: a hub's clock may be wrong. What is known from a read may have been reported long before it.
    AND ($8::timestamptz IS NULL OR (channel.observed_at IS NOT NULL AND channel.observed_logged < extract(epoch FROM $8::timestamptz) * 1e9)
        OR (channel.basis = 'read' AND channel.observed_at < $8))
    AND hub.id >= $9
    AND (hub.id, channel.device_id, channel.key, channel.endpoint) > ($9, $10::bigint, $11::text, $12::bigint)
ORDER BY hub.id, channel.device_id, channel.key, channel.endpoint
LIMIT $13
