INSERT INTO {schema}.channels (hub_id, device_id, key, endpoint, was_read, kind, unit, readable, writable, capabilities, available, value, observed_at,
    changed_at, desired, desired_at, status, basis, read_at, seq, event_seq)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::boolean[], $6::text[], $7::text[], $8::boolean[], $9::boolean[],
    $10::text[], $11::boolean[], $12::text[], $13::timestamptz[], $14::timestamptz[], $15::text[], $16::timestamptz[], $17::text[], $18::text[],
    $19::timestamptz[], $20::bigint[], $21::bigint[])
ON CONFLICT (hub_id, device_id, key, endpoint) DO UPDATE SET was_read = excluded.was_read, kind = excluded.kind, unit = excluded.unit,
    readable = excluded.readable, writable = excluded.writable, capabilities = excluded.capabilities, available = excluded.available,
    value = excluded.value, observed_at = excluded.observed_at, changed_at = excluded.changed_at, desired = excluded.desired,
    desired_at = excluded.desired_at, status = excluded.status, basis = excluded.basis, read_at = excluded.read_at, seq = excluded.seq,
    event_seq = excluded.event_seq
