INSERT INTO hub_presence (hub_id, online, since, public_ip, reason, firmware, network)
SELECT hub_id, online, since, public_ip, reason, firmware, network
FROM unnest($1::text[], $2::boolean[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[])
    AS p (hub_id, online, since, public_ip, reason, firmware, network)
ON CONFLICT (hub_id) DO UPDATE SET
    online = excluded.online, since = excluded.since, public_ip = excluded.public_ip, reason = excluded.reason,
    firmware = excluded.firmware, network = excluded.network
