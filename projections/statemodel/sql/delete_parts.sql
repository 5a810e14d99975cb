WITH gone AS (DELETE FROM {schema}.devices WHERE hub_id = ANY ($1::text[]))
DELETE FROM {schema}.channels WHERE hub_id = ANY ($1::text[])
