SELECT hub_id, device_id, key, endpoint, was_read, kind, unit, readable, writable, capabilities, available, value, observed_at, changed_at, desired,
    desired_at, status, basis, read_at, seq, event_seq
FROM {schema}.channels WHERE hub_id = ANY ($1::text[]) ORDER BY hub_id, device_id, key, endpoint
