INSERT INTO orgs (id, name, created_at)
SELECT id, name, created_at FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS o (id, name, created_at)
