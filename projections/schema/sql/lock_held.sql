-- Returns whether any session holds the advisory lock with two numbers. Written by hand: sqlc does not know pg_locks.
SELECT EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid::bigint = $1 AND objid::bigint = $2
)
