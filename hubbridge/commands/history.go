package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

// recordsPerCommand is how many records a command has as a rule: one when it is sent, one when it
// is answered.
const recordsPerCommand = 2

// History gives the newest commands that were sent to a hub since then, about limit of them, oldest
// first, each with what its caller was answered last. It is kept as long as the hub's events.
func (c *Commands) History(
	ctx context.Context, hub domain.HubID, since time.Time, limit int,
) ([]domain.CommandDone, error) {
	raw, err := c.logs.Commands(ctx, hub, since, recordsPerCommand*limit)
	if err != nil {
		return nil, streams.Unavailable(err, "the hub's commands cannot be read at the moment")
	}
	var all []domain.CommandDone
	for _, text := range raw {
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("commands of %s: unreadable record: %w", hub, err)
		}
		at, err := time.Parse(domain.TimeLayout, r.Time)
		if err != nil {
			return nil, fmt.Errorf("commands of %s: unreadable record: %w", hub, err)
		}
		i := slices.IndexFunc(
			all, func(known domain.CommandDone) bool { return known.ID == r.CommandID },
		)
		if i < 0 {
			i = len(all)
			all = append(all, domain.CommandDone{
				ID: r.CommandID, OrgID: r.OrgID, HubID: r.HubID, DeviceID: r.DeviceID, Key: r.Key,
				Endpoint: r.Endpoint, Value: r.Value, At: at, Actor: r.Actor,
			})
		}
		if r.Type == recordAnswered {
			all[i].Outcome, all[i].Message = r.Outcome, r.Message
		}
	}
	return all, nil
}
