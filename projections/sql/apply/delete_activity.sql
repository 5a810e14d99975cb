-- The newest row says what the time is, so that the same events give the same rows whenever they are read. It is never deleted itself.
DELETE FROM activity WHERE at < (SELECT max(at) FROM activity) - make_interval(hours => $1::int)
