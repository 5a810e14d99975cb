-- The newest entries of an organization's book before the place ($8, $9). Gaps are found by every kind and site.
SELECT seq, at, entry FROM book
WHERE org_id = $1 AND ($2 = '' OR site_id = $2 OR kind = 'gap') AND ($3 = '' OR kind IN ($3, 'gap'))
    AND NOT EXISTS (SELECT FROM unnest($4::text[]) word WHERE position(word IN place) = 0) AND position($5 IN what) > 0
    AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
    AND ($8::timestamptz IS NULL OR (at, seq) < ($8, $9::bigint))
ORDER BY at DESC, seq DESC
LIMIT $10
