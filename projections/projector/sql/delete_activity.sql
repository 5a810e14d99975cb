-- The age counts from the newest row, so that the same events always make the same rows. The newest row is never deleted.
DELETE FROM activity WHERE at < (SELECT max(at) FROM activity) - make_interval(hours => $1::int)
