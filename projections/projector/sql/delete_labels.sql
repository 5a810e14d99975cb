DELETE FROM device_labels l USING unnest($1::text[], $2::bigint[]) AS d (hub_id, device_id)
WHERE l.hub_id = d.hub_id AND l.device_id = d.device_id
