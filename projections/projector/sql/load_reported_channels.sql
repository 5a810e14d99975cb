SELECT hub_id, device_id, key, endpoint, was_read, kind, unit, readable, writable, capabilities, available, value, standing, observed_at, changed_at, desired,
    desired_at, status, unsure, basis, observed_logged, changed_logged, desired_logged, seq, event_seq, event_number
FROM reported_channels WHERE hub_id = ANY ($1::text[]) ORDER BY hub_id, device_id, key, endpoint
