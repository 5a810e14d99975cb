INSERT INTO {schema}.hubs (hub_id, journal, epoch, seq, event_seq, at, since, doubt, doubt_number, read_after, read_number, was_read, forgotten, certain)
SELECT hub_id, $1, epoch, seq, event_seq, at, since, doubt, doubt_number, read_after, read_number, was_read, forgotten, certain
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::timestamptz[], $8::bigint[], $9::bigint[], $10::bigint[],
    $11::bigint[], $12::boolean[], $13::text[], $14::boolean[])
    AS new (hub_id, epoch, seq, event_seq, at, since, doubt, doubt_number, read_after, read_number, was_read, forgotten, certain)
ON CONFLICT (hub_id) DO UPDATE SET epoch = excluded.epoch, seq = excluded.seq, event_seq = excluded.event_seq, at = excluded.at,
    since = excluded.since, doubt = excluded.doubt, doubt_number = excluded.doubt_number, read_after = excluded.read_after,
    read_number = excluded.read_number, was_read = excluded.was_read, forgotten = excluded.forgotten, certain = excluded.certain
