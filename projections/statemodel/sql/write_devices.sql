INSERT INTO {schema}.devices (hub_id, device_id, name, manufacturer, model, available, available_since, available_logged, doubt, doubt_number,
    read_after, read_number, was_read, named_seq, named_number, reached_seq, reached_number, event_seq, event_number, seq, certain)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::timestamptz[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::bigint[], $13::boolean[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[],
    $19::bigint[], $20::bigint[], $21::boolean[])
ON CONFLICT (hub_id, device_id) DO UPDATE SET name = excluded.name, manufacturer = excluded.manufacturer, model = excluded.model,
    available = excluded.available, available_since = excluded.available_since, available_logged = excluded.available_logged,
    doubt = excluded.doubt, doubt_number = excluded.doubt_number, read_after = excluded.read_after, read_number = excluded.read_number,
    was_read = excluded.was_read, named_seq = excluded.named_seq, named_number = excluded.named_number, reached_seq = excluded.reached_seq,
    reached_number = excluded.reached_number, event_seq = excluded.event_seq, event_number = excluded.event_number, seq = excluded.seq,
    certain = excluded.certain
