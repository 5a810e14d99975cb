-- The organizations with a hub that is not connected, or with a channel that may need attention.
SELECT DISTINCT hub.org_id
FROM hubs hub
LEFT JOIN hub_presence presence ON presence.hub_id = hub.id
WHERE presence.online = false
    OR EXISTS (SELECT FROM reported_channels reported WHERE reported.hub_id = hub.id AND reported.suspect)
