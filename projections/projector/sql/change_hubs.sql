-- Null leaves a column unchanged. A hub can lose its name, so the column renamed tells whether name is the new one.
UPDATE hubs h SET
    site_id = COALESCE(c.site_id, h.site_id),
    name = CASE WHEN c.renamed THEN c.name ELSE h.name END,
    epoch = COALESCE(c.epoch, h.epoch),
    log_after = COALESCE(c.log_after, h.log_after),
    log_former = COALESCE(c.log_former, h.log_former)
FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[], $5::text[], $6::text[], $7::bigint[], $8::text[])
    AS c (id, org_id, site_id, renamed, name, epoch, log_after, log_former)
WHERE h.id = c.id AND h.org_id = c.org_id
