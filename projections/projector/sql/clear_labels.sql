DELETE FROM device_labels WHERE hub_id = ANY ($1::text[])
