-- The hubs of an organization from $4 on that have reported channels, with how many. Rows of another epoch than the hub's are what an earlier owner or an
-- earlier life of the hub reported; those of a former epoch of a restored log may lack what was lost.
SELECT hub.id, state.channels
FROM hubs hub
JOIN reported_hubs state ON state.hub_id = hub.id
    AND (state.epoch = hub.epoch OR position(state.epoch || ':' IN hub.log_former) > 0)
WHERE hub.org_id = $1
    AND ($2::text IS NULL OR hub.site_id = $2)
    AND ($3::text IS NULL OR hub.id = $3)
    AND hub.id >= $4
    AND ($6::text[] IS NULL OR hub.site_id = ANY ($6))
ORDER BY hub.id
LIMIT $5
