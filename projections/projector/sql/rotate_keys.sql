UPDATE api_keys k SET secret_hash = c.secret_hash, former_secrets = c.former_secrets
FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) AS c (id, org_id, secret_hash, former_secrets)
WHERE k.id = c.id AND k.org_id = c.org_id
