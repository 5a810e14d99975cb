INSERT INTO hubs (id, org_id, site_id, name, registered_at, connected_when_added, incarnation, log_after)
SELECT id, org_id, site_id, name, registered_at, connected_when_added, incarnation, log_after
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::boolean[], $7::text[], $8::bigint[])
    AS h (id, org_id, site_id, name, registered_at, connected_when_added, incarnation, log_after)
