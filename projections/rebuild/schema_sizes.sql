-- The schemas of read models and their sizes in bytes. Written by hand: sqlc does not know the catalog.
SELECT n.nspname::text, coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relkind = 'r'), 0)::bigint
FROM pg_namespace n
LEFT JOIN pg_class c ON c.relnamespace = n.oid
WHERE n.nspname ~ '^hubcloud_[0-9a-f]{12}(_(next|verify|old)_.*)?$'
GROUP BY n.nspname
ORDER BY n.nspname
