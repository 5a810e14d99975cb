-- Scopes come as one text each, since unnest takes arrays of arrays apart altogether.
INSERT INTO api_keys (id, org_id, label, environment, scopes, secret_hash, created_at)
SELECT id, org_id, label, environment, string_to_array(scopes, ' '), secret_hash, created_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::timestamptz[])
    AS k (id, org_id, label, environment, scopes, secret_hash, created_at)
