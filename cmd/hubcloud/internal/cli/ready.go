package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/address"
	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/httpapi"
)

// readyTimeout bounds the question to a service that may hang.
const readyTimeout = 4 * time.Second

// readyCommand asks the service on this machine how it is: the health check of its container, which
// has no other program in it.
type readyCommand struct {
	outputFlags
	DataDir string `help:"Data directory of the service." default:"./data" type:"path"`
}

// Help is the long form of --help.
func (c *readyCommand) Help() string {
	return `Asks the service on this machine, at its --admin address, what /readyz says: exit code 0 when it is ready, 1 when it is not or when none runs.

Example: hubcloud ready --data-dir /var/lib/hubcloud`
}

// Run asks, and prints what is not well.
func (c *readyCommand) Run(ctx context.Context, out Streams) error {
	bound, err := datadir.Dir(c.DataDir).Endpoints()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(
		ctx, http.MethodGet, "http://"+address.Dialable(bound.Admin)+"/readyz", nil,
	)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("the service does not answer: %w", err)
	}
	defer answer.Body.Close()
	var body struct {
		Ready      bool                `json:"ready"`
		Components []httpapi.Component `json:"components"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return fmt.Errorf("the service answers %s: %w", answer.Status, err)
	}
	if body.Ready {
		return c.print(out.Out, field{"state", "ready"})
	}
	var missing []string
	for _, component := range body.Components {
		if !component.OK {
			missing = append(missing, component.Name+": "+component.Detail)
		}
	}
	return errors.New("not ready: " + strings.Join(missing, "; "))
}
