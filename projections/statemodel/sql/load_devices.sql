SELECT hub_id, device_id, name, manufacturer, model, available, available_since, doubt, read_after, was_read, name_seq, available_seq, seq, event_seq
FROM {schema}.devices WHERE hub_id = ANY ($1::text[]) ORDER BY hub_id, device_id
