-- name: ClaimInstallation :exec
INSERT INTO hubcloud.installation (id) VALUES (@id) ON CONFLICT (only_row) DO NOTHING;

-- name: Installation :one
SELECT id FROM hubcloud.installation;

-- name: RecordSchema :exec
INSERT INTO hubcloud.schemas (name, definition_hash) VALUES (@name, @definition_hash)
ON CONFLICT (name) DO UPDATE SET state = 'building', created_at = now(), live_at = NULL;

-- name: SchemaState :one
SELECT state FROM hubcloud.schemas WHERE name = @name;

-- Projections that are built at the same moment see each other only if one waits for the other.
-- name: LockSchema :one
SELECT state FROM hubcloud.schemas WHERE name = @name FOR UPDATE;

-- A schema is live once all its projections are built.
-- name: SetLive :exec
UPDATE hubcloud.schemas SET state = 'live', live_at = now()
WHERE name = @name AND state = 'building' AND NOT EXISTS (SELECT FROM checkpoints WHERE NOT built);

-- name: Stops :many
SELECT projection, why, stopped_at FROM hubcloud.stops;

-- name: PutStop :exec
INSERT INTO hubcloud.stops (projection, why) VALUES (@projection, @why) ON CONFLICT (projection) DO UPDATE SET why = excluded.why;

-- name: RemoveStop :execrows
DELETE FROM hubcloud.stops WHERE projection = @projection;

-- Every schema of read models that a program can be at work on.
-- name: Schemas :many
SELECT name, definition_hash, state FROM hubcloud.schemas WHERE to_regnamespace(quote_ident(name)) IS NOT NULL ORDER BY name;
