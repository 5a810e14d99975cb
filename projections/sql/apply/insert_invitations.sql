INSERT INTO invitations (org_id, id, email, role, created_at, expires_at, created_sequence)
SELECT org_id, id, email, role, created_at, expires_at, created_sequence
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::bigint[])
    AS i (org_id, id, email, role, created_at, expires_at, created_sequence)
