SELECT hub.org_id, sum(state.channels)::bigint
FROM reported_hubs state
JOIN hubs hub ON hub.id = state.hub_id
GROUP BY hub.org_id
