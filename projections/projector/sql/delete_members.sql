DELETE FROM members m USING unnest($1::text[], $2::text[]) AS d (org_id, id)
WHERE m.org_id = d.org_id AND m.id = d.id
