UPDATE reported_hubs SET doubt = seq, doubt_number = 0, certain = false WHERE journal = $1
