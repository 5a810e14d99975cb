SELECT term FROM {schema}.leader FOR UPDATE
