package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/client"
)

// readersCommand lists the readers of events.
type readersCommand struct {
	apiFlags
}

// Run prints the readers.
func (c *readersCommand) Run(ctx context.Context, out Output) error {
	header := []string{
		"READER", "READS", "STATE", "EVENTS BEHIND", "BEHIND", "EXPIRES IN", "LAST SEEN",
	}
	return listAll(ctx, out, &c.apiFlags, (*client.Client).Readers, header, func(r client.Reader) []string {
		behind := "?"
		if r.EventsBehind != nil {
			behind = strconv.FormatInt(*r.EventsBehind, 10)
		}
		return []string{
			r.Name, whatIsRead(r), string(r.State), behind, seconds(r.SecondsBehind),
			seconds(r.ExpiresIn), shortTime(r.LastSeenAt),
		}
	})
}

// whatIsRead returns the hub that a reader reads, or its part of the feed.
func whatIsRead(reader client.Reader) string {
	switch {
	case reader.HubID != nil:
		return *reader.HubID
	case reader.Part != nil:
		return "part " + *reader.Part
	default:
		return "all hubs"
	}
}

func seconds(n int64) string { return (time.Duration(n) * time.Second).String() }

// checkReader checks the value of --reader.
func checkReader(name string) error {
	if name == "" || domain.CheckReaderName(name) == nil {
		return nil
	}
	return fmt.Errorf("--reader %q: must be 1 to %d printable characters", name, domain.MaxReaderName)
}
