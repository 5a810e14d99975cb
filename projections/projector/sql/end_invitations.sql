UPDATE invitations i SET status = c.status
FROM unnest($1::text[], $2::text[], $3::text[]) AS c (org_id, id, status)
WHERE i.org_id = c.org_id AND i.id = c.id
