UPDATE {schema}.hubs SET doubt = seq, certain = false WHERE journal = $1
