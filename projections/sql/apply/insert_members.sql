INSERT INTO members (org_id, id, email, role, joined_at, joined_sequence)
SELECT org_id, id, email, role, joined_at, joined_sequence
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bigint[])
    AS m (org_id, id, email, role, joined_at, joined_sequence)
