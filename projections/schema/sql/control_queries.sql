-- name: ClaimInstallation :exec
INSERT INTO hubcloud.installation (id) VALUES (@id) ON CONFLICT (only_row) DO NOTHING;

-- name: Installation :one
SELECT id FROM hubcloud.installation;

-- name: RecordSchema :exec
INSERT INTO hubcloud.schemas (name, definition_hash) VALUES (@name, @definition_hash)
ON CONFLICT (name) DO UPDATE SET state = 'building', created_at = now(), live_at = NULL;

-- name: SchemaState :one
SELECT state FROM hubcloud.schemas WHERE name = @name;

-- Without the lock, two projections that become complete at the same moment would not see each other.
-- name: LockSchema :one
SELECT state FROM hubcloud.schemas WHERE name = @name FOR UPDATE;

-- SetLive makes a schema live if the projections that readers wait for are built, and notifies all listeners.
-- name: SetLive :exec
WITH complete AS (
    UPDATE hubcloud.schemas SET state = 'live', live_at = now()
    WHERE name = @name AND state = 'building' AND NOT EXISTS (SELECT FROM checkpoints WHERE NOT built AND projection IN ('directory', 'presence'))
)
SELECT pg_notify(@name, 'look');

-- name: Stops :many
SELECT projection, why, stopped_at FROM hubcloud.stops;

-- name: PutStop :exec
INSERT INTO hubcloud.stops (projection, why) VALUES (@projection, @why) ON CONFLICT (projection) DO UPDATE SET why = excluded.why;

-- name: RemoveStop :execrows
DELETE FROM hubcloud.stops WHERE projection = @projection;

-- Schemas that exist and that a program may be writing to.
-- name: Schemas :many
SELECT name, definition_hash, state FROM hubcloud.schemas WHERE to_regnamespace(quote_ident(name)) IS NOT NULL ORDER BY name;

-- The table keeps one row for each schema: its last build.
-- name: BeginBuild :exec
WITH former AS (DELETE FROM hubcloud.builds b WHERE b.schema = @schema)
INSERT INTO hubcloud.builds (target, schema, purpose, phase, sequence, head) VALUES (@target, @schema, @purpose, 'load', 0, 0);

-- name: UpdateBuild :exec
UPDATE hubcloud.builds SET phase = @phase, sequence = @sequence, head = @head, updated_at = now() WHERE target = @target;

-- name: Build :one
SELECT target, purpose, phase, sequence, head, started_at FROM hubcloud.builds WHERE schema = @schema ORDER BY started_at DESC LIMIT 1;

-- name: RecordRetired :exec
INSERT INTO hubcloud.retired (name, definition_hash) VALUES (@name, @definition_hash);

-- name: ForgetSchema :exec
WITH retired AS (DELETE FROM hubcloud.retired r WHERE r.name = @name)
DELETE FROM hubcloud.schemas s WHERE s.name = @name;

-- name: RecordLive :exec
INSERT INTO hubcloud.schemas (name, definition_hash, state, live_at) VALUES (@name, @definition_hash, 'live', now())
ON CONFLICT (name) DO UPDATE SET state = 'live', live_at = now();
