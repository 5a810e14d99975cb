-- Ends the sessions that hold the advisory lock with the numbers $1 and $2 and have been silent for $3 seconds: their process hangs, or cannot
-- reach the database. Written by hand: sqlc does not know pg_locks.
SELECT count(pg_terminate_backend(a.pid))
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid::bigint = $1 AND l.objid::bigint = $2
    AND a.state <> 'active' AND a.state_change < clock_timestamp() - make_interval(secs => $3)
