DELETE FROM book WHERE org_id = $1 AND seq < $2 AND ($3 = '' OR hub_id = $3) AND ($4 = '' OR kind = $4)
