-- Ends the other sessions that have written to the table checkpoints in a transaction that is still open. Written by hand: sqlc does not know pg_locks.
SELECT count(pg_terminate_backend(pid))
FROM pg_locks
WHERE locktype = 'relation' AND relation = 'checkpoints'::regclass AND mode = 'RowExclusiveLock' AND granted AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
