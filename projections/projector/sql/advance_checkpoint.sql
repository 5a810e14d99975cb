-- Changes no row if another process has moved the checkpoint, if another projector has taken over, or if an operator has stopped a projection that
-- respects stops ($5). This is the first statement of a batch's transaction: a session that locks the table checkpoints never sees half a batch.
UPDATE checkpoints
SET sequence = $3, event_id = $4, stopped_sequence = NULL, stopped_type = NULL, stopped_error = NULL
WHERE projection = $1 AND sequence = $2 AND term = $6
    AND NOT ($5 AND EXISTS (SELECT FROM hubcloud.stops WHERE projection = split_part($1, '/', 1)))
