UPDATE sites s SET name = c.name
FROM unnest($1::text[], $2::text[], $3::text[]) AS c (id, org_id, name)
WHERE s.id = c.id AND s.org_id = c.org_id
