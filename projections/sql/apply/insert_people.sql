INSERT INTO people (org_id, id, email)
SELECT org_id, id, email FROM unnest($1::text[], $2::text[], $3::text[]) AS p (org_id, id, email)
