-- Schemas whose names begin with one of two prefixes. Written by hand: sqlc does not know pg_namespace.
SELECT nspname::text FROM pg_namespace WHERE starts_with(nspname::text, $1) OR starts_with(nspname::text, $2) ORDER BY nspname
