INSERT INTO sites (id, org_id, name, created_at, created_sequence)
SELECT id, org_id, name, created_at, created_sequence
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::bigint[]) AS s (id, org_id, name, created_at, created_sequence)
