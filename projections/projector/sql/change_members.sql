UPDATE members m SET role = c.role
FROM unnest($1::text[], $2::text[], $3::text[]) AS c (org_id, id, role)
WHERE m.org_id = c.org_id AND m.id = c.id
