-- Hubs of a journal whose rows no organization can see: theirs are of another epoch than the hub's, or no organization has the hub. The
-- read models have the directory up to a moment ago; those that reported since may be of an epoch that has begun since.
SELECT state.hub_id
FROM reported_hubs state
LEFT JOIN hubs hub ON hub.id = state.hub_id
WHERE state.journal = $1 AND state.at < now() - interval '10 minutes'
    AND (hub.id IS NULL OR hub.epoch <> state.epoch AND position(state.epoch || ':' IN hub.log_former) = 0)
    AND EXISTS (SELECT FROM hubcloud.schemas WHERE name = current_schema() AND schemas.state = 'live')
LIMIT 1000
