-- Changes nothing, and finds no row if another projector has taken over, or if an operator has stopped the projection. Neither can happen before the
-- transaction has ended.
UPDATE checkpoints SET term = term
WHERE projection = $1 AND term = $2 AND NOT EXISTS (SELECT FROM hubcloud.stops WHERE projection = split_part($1, '/', 1))
