UPDATE api_keys k SET revoked_at = COALESCE(k.revoked_at, c.revoked_at)
FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS c (id, org_id, revoked_at)
WHERE k.id = c.id AND k.org_id = c.org_id
