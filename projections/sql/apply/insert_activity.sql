INSERT INTO activity (org_id, sequence, at, type, actor_kind, actor_id, subject_id, hub_id, detail)
SELECT org_id, sequence, at, type, actor_kind, actor_id, subject_id, hub_id, detail
FROM unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])
    AS a (org_id, sequence, at, type, actor_kind, actor_id, subject_id, hub_id, detail)
