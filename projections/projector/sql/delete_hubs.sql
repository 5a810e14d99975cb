DELETE FROM hubs h USING unnest($1::text[], $2::text[]) AS d (id, org_id)
WHERE h.id = d.id AND h.org_id = d.org_id
