SELECT hub_id, epoch, seq, event_seq, at, since, doubt, read_after, was_read, forgotten
FROM {schema}.hubs WHERE hub_id = ANY ($1::text[])
