DELETE FROM hub_presence WHERE hub_id = ANY ($1::text[])
