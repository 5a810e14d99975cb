UPDATE {schema}.leader SET term = term + 1 RETURNING term
