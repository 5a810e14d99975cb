INSERT INTO members (org_id, id, email, role, joined_at)
SELECT org_id, id, email, role, joined_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[]) AS m (org_id, id, email, role, joined_at)
