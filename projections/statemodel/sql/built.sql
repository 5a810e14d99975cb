SELECT coalesce(bool_and(built), false) FROM {schema}.checkpoints
