UPDATE api_keys k SET sites = string_to_array(c.sites, ' '), expires_at = c.expires_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) AS c (id, org_id, sites, expires_at)
WHERE k.id = c.id AND k.org_id = c.org_id
