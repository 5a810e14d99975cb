-- The devices of an organization that have all words $2, which are in lower case, in their name, room, model or number, or the name of their hub or site.
-- Devices whose own name has the first word come first.
SELECT hub_id, hub_name, site_name, device_id, name, room, manufacturer, model
FROM (
  SELECT *, lower(concat_ws(' ', name, room, manufacturer, model, device_id, hub_name, hub_id, site_name)) AS texts
  FROM (
    SELECT hub.id AS hub_id, coalesce(hub.name, '') AS hub_name, coalesce(site.name, '') AS site_name, device.device_id,
        coalesce(label.name, device.name) AS name, coalesce(label.room, '') AS room, device.manufacturer, device.model
    FROM hubs hub
    JOIN reported_hubs state ON state.hub_id = hub.id
        AND (state.epoch = hub.epoch OR position(state.epoch || ':' IN hub.log_former) > 0)
    CROSS JOIN LATERAL (SELECT * FROM reported_devices row WHERE row.hub_id = hub.id OFFSET 0) device
    LEFT JOIN device_labels label ON label.hub_id = hub.id AND label.device_id = device.device_id AND label.org_id = hub.org_id
    LEFT JOIN sites site ON site.id = hub.site_id AND site.org_id = hub.org_id
    WHERE hub.org_id = $1
  ) found
  OFFSET 0 -- the texts of a device are put together once, not for each word
) device
WHERE NOT EXISTS (
    SELECT FROM unnest($2::text[]) word
    WHERE position(word IN texts) = 0
)
ORDER BY position(($2::text[])[1] IN lower(name)) = 0, lower(name), hub_id, device_id
LIMIT $3
