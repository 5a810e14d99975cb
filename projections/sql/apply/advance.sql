-- Checkpoint and tables move together or not at all: no row is changed when somebody else has moved the checkpoint, when another projector has taken
-- over, or when an operator has stopped the projection and that is to be heeded. It is the first statement of a batch's transaction: whoever locks the table
-- checkpoints has no batch half written.
UPDATE checkpoints
SET sequence = $3, event_id = $4, stopped_sequence = NULL, stopped_type = NULL, stopped_error = NULL
WHERE projection = $1 AND sequence = $2 AND term = $6 AND NOT ($5 AND EXISTS (SELECT FROM hubcloud.stops WHERE projection = $1))
