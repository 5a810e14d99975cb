-- The devices of an organization that have all words in their name, room, model or number, or the name of their hub or site. $2 has a pattern of LIKE for
-- each word, in lower case. Devices whose own name has the first word come first. Each has the value of the first channel of $4 that it has.
SELECT found.hub_id, hub_name, site_name, found.device_id, name, room, manufacturer, model, coalesce(main.key, ''), coalesce(main.unit, ''), main.value, main.changed_at
FROM (
SELECT hub_id, hub_name, site_name, device_id, name, room, manufacturer, model, row_number() OVER (ORDER BY lower(name) NOT LIKE ($2::text[])[1], lower(name), hub_id, device_id) AS place
FROM (
  SELECT device.hub_id, coalesce(hub.name, '') AS hub_name, coalesce(hub.site_name, '') AS site_name, device.device_id,
      coalesce(label.name, device.name) AS name, coalesce(label.room, '') AS room, device.manufacturer, device.model, hub.missing
  FROM ( -- one look into the index for the devices of all hubs: one a hub takes half the time of the search
    SELECT hub_id, device_id, name, manufacturer, model FROM reported_devices WHERE hub_id = ANY (ARRAY(SELECT id FROM hubs WHERE org_id = $1)) OFFSET 0
  ) device
  -- Never a loop over the devices for each hub, which an inner join is if PostgreSQL expects few hubs.
  FULL JOIN ( -- what the hub and the site do not have, the device must have
    SELECT hub.id, hub.org_id, hub.name, site.name AS site_name,
        ARRAY(SELECT word FROM unnest($2::text[]) word WHERE lower(concat_ws(' ', hub.name, hub.id, site.name)) NOT LIKE word) AS missing
    FROM hubs hub
    JOIN reported_hubs state ON state.hub_id = hub.id AND (state.epoch = hub.epoch OR position(state.epoch || ':' IN hub.log_former) > 0)
    LEFT JOIN sites site ON site.id = hub.site_id AND site.org_id = hub.org_id
    WHERE hub.org_id = $1
    OFFSET 0
  ) hub ON hub.id = device.hub_id
  LEFT JOIN device_labels label ON label.hub_id = hub.id AND label.device_id = device.device_id AND label.org_id = hub.org_id
) device
WHERE lower(name || ' ' || room || ' ' || manufacturer || ' ' || model || ' ' || device_id) LIKE ALL (missing)
  AND coalesce(hub_id, '') <> '' -- of hubs without devices; IS NOT NULL would make the full join an outer one
ORDER BY place
LIMIT $3
) found
LEFT JOIN LATERAL (
  SELECT key, unit, value, changed_at FROM reported_channels channel
  WHERE channel.hub_id = found.hub_id AND channel.device_id = found.device_id AND key = ANY ($4::text[])
  ORDER BY array_position($4::text[], key), endpoint
  LIMIT 1
) main ON cardinality($4::text[]) > 0
ORDER BY place
