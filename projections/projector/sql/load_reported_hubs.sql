SELECT hub_id, epoch, seq, event_seq, at, since, doubt, doubt_number, read_after, read_number, was_read, forgotten, omitted
FROM reported_hubs WHERE hub_id = ANY ($1::text[])
