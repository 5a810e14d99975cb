SELECT hub_id, device_id, name, manufacturer, model, available, available_since, available_logged, doubt, doubt_number, read_after, read_number,
    was_read, named_seq, named_number, reached_seq, reached_number, event_seq, event_number, seq
FROM reported_devices WHERE hub_id = ANY ($1::text[]) ORDER BY hub_id, device_id
