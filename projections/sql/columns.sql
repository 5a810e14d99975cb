-- The tables of a schema with their columns: whether each is a whole number, and its place in the primary key, from 0. By hand, since sqlc does not
-- know the catalog.
SELECT c.relname::text, a.attname::text, a.atttypid IN ('int8'::regtype, 'int4'::regtype), array_position(i.indkey::int2[], a.attnum)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r'
ORDER BY c.relname, a.attnum
