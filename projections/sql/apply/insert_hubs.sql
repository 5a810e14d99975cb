INSERT INTO hubs (id, org_id, site_id, name, registered_at, connected_when_added, incarnation, log_after, log_former)
SELECT id, org_id, site_id, name, registered_at, connected_when_added, incarnation, log_after, log_former
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::boolean[], $7::text[], $8::bigint[], $9::text[])
    AS h (id, org_id, site_id, name, registered_at, connected_when_added, incarnation, log_after, log_former)
