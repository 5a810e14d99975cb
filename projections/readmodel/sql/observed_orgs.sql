-- The organizations with a hub that is not connected, or with a channel that may need attention, as in states_attention.sql.
SELECT DISTINCT hub.org_id
FROM hubs hub
LEFT JOIN hub_presence presence ON presence.hub_id = hub.id
WHERE presence.online = false
    OR EXISTS (
        SELECT FROM reported_channels suspect
        WHERE suspect.hub_id = hub.id AND (
            NOT suspect.available
            OR suspect.status IN ('failed', 'diverged')
            OR (suspect.key IN ('smoke', 'co', 'heat', 'leak', 'tamper') AND suspect.value = 'true')
            OR suspect.standing IS NOT NULL
            OR (suspect.key = 'battery' AND suspect.value ~ '^-?([0-9]|1[0-9])([.eE]|$)')
        )
    )
