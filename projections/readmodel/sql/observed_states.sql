-- The channels of the devices of which some channel may need attention, as in states_attention.sql, $3 channels of each organization, and of the devices
-- $2 of the hubs $1. Rows as in states.sql, with the organization first and without what describes devices and channels.
SELECT hub.org_id,
    hub.id, hub.site_id, hub.registered_at, hub.connected_when_added, presence.online, presence.since,
    device.device_id, coalesce(label.name, nullif(device.name, '')), '', '', label.room, device.available_since, device.available_logged,
    channel.key, channel.endpoint, channel.kind, channel.unit, channel.readable, channel.writable, NULL, channel.available,
    channel.value, channel.standing, channel.observed_at, channel.desired, channel.desired_at, channel.status, channel.changed_at, channel.basis,
    channel.observed_logged, channel.changed_logged, channel.desired_logged,
    state.certain AND device.certain AND state.epoch = hub.epoch
FROM (
    SELECT ranked.hub_id, ranked.device_id
    FROM (
        SELECT suspect.hub_id, suspect.device_id, row_number() OVER (
            PARTITION BY owned.org_id
            ORDER BY (suspect.key IN ('smoke', 'co', 'heat', 'leak', 'tamper') OR suspect.standing IS NOT NULL) DESC
        ) AS place
        FROM reported_channels suspect
        JOIN hubs owned ON owned.id = suspect.hub_id
        WHERE NOT suspect.available
            OR suspect.status IN ('failed', 'diverged')
            OR (suspect.key IN ('smoke', 'co', 'heat', 'leak', 'tamper') AND suspect.value = 'true')
            OR suspect.standing IS NOT NULL
            OR (suspect.key = 'battery' AND suspect.value ~ '^-?([0-9]|1[0-9])([.eE]|$)')
    ) ranked
    WHERE ranked.place <= $3
    UNION
    SELECT * FROM unnest($1::text[], $2::bigint[])
) device_of
JOIN hubs hub ON hub.id = device_of.hub_id
JOIN reported_hubs state ON state.hub_id = hub.id
    AND (state.epoch = hub.epoch OR position(state.epoch || ':' IN hub.log_former) > 0)
JOIN reported_devices device ON device.hub_id = hub.id AND device.device_id = device_of.device_id
JOIN reported_channels channel ON channel.hub_id = hub.id AND channel.device_id = device.device_id
LEFT JOIN device_labels label ON label.hub_id = hub.id AND label.device_id = device.device_id AND label.org_id = hub.org_id
LEFT JOIN hub_presence presence ON presence.hub_id = hub.id
ORDER BY hub.id, channel.device_id, channel.key, channel.endpoint
