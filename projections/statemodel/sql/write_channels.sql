INSERT INTO {schema}.channels (hub_id, device_id, key, endpoint, was_read, kind, unit, readable, writable, capabilities, available, value, standing, observed_at,
    changed_at, desired, desired_at, status, unsure, basis, observed_logged, changed_logged, desired_logged, seq, event_seq, event_number)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::boolean[], $6::text[], $7::text[], $8::boolean[], $9::boolean[],
    $10::text[], $11::boolean[], $12::text[], $13::text[], $14::timestamptz[], $15::timestamptz[], $16::text[], $17::timestamptz[], $18::text[],
    $19::boolean[], $20::text[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[], $26::bigint[])
ON CONFLICT (hub_id, device_id, key, endpoint) DO UPDATE SET was_read = excluded.was_read, kind = excluded.kind, unit = excluded.unit,
    readable = excluded.readable, writable = excluded.writable, capabilities = excluded.capabilities, available = excluded.available,
    value = excluded.value, standing = excluded.standing, observed_at = excluded.observed_at, changed_at = excluded.changed_at, desired = excluded.desired,
    desired_at = excluded.desired_at, status = excluded.status, unsure = excluded.unsure, basis = excluded.basis, observed_logged = excluded.observed_logged,
    changed_logged = excluded.changed_logged, desired_logged = excluded.desired_logged, seq = excluded.seq, event_seq = excluded.event_seq,
    event_number = excluded.event_number
