UPDATE orgs o SET name = c.name
FROM unnest($1::text[], $2::text[]) AS c (id, name)
WHERE o.id = c.id
