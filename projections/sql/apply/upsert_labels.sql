INSERT INTO device_labels (org_id, hub_id, device_id, name, room)
SELECT org_id, hub_id, device_id, name, room
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[]) AS l (org_id, hub_id, device_id, name, room)
ON CONFLICT (hub_id, device_id) DO UPDATE SET name = excluded.name, room = excluded.room
