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
