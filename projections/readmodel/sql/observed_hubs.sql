-- The hubs of the organization $1 that are not connected, and its hubs $2. The last column is whether all devices of a hub are known.
SELECT hub.id, coalesce(hub.name, ''), hub.site_id, coalesce(site.name, ''), hub.registered_at, hub.connected_when_added,
    presence.online, presence.since, coalesce(state.certain AND state.epoch = hub.epoch, false)
FROM hubs hub
LEFT JOIN sites site ON site.id = hub.site_id AND site.org_id = hub.org_id
LEFT JOIN hub_presence presence ON presence.hub_id = hub.id
LEFT JOIN reported_hubs state ON state.hub_id = hub.id
WHERE hub.org_id = $1 AND (presence.online = false OR hub.id = ANY ($2::text[]))
ORDER BY hub.id
