INSERT INTO {schema}.devices (hub_id, device_id, name, manufacturer, model, available, available_since, doubt, read_after, was_read, name_seq,
    available_seq, seq, event_seq, certain)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::timestamptz[], $8::bigint[], $9::bigint[],
    $10::boolean[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::boolean[])
ON CONFLICT (hub_id, device_id) DO UPDATE SET name = excluded.name, manufacturer = excluded.manufacturer, model = excluded.model,
    available = excluded.available, available_since = excluded.available_since, doubt = excluded.doubt, read_after = excluded.read_after,
    was_read = excluded.was_read, name_seq = excluded.name_seq, available_seq = excluded.available_seq, seq = excluded.seq,
    event_seq = excluded.event_seq, certain = excluded.certain
