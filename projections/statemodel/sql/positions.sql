SELECT wanted.journal, coalesce(checkpoint.position, 0), coalesce(checkpoint.built, false)
FROM generate_series(0, $1::int - 1) AS wanted (journal)
LEFT JOIN {schema}.checkpoints checkpoint ON checkpoint.journal = wanted.journal
ORDER BY wanted.journal
