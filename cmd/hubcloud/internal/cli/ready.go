package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/httpapi"
)

// readyTimeout bounds the request: the service may hang.
const readyTimeout = 4 * time.Second

// readyCommand checks whether the service on this machine is ready. It is the health check of the
// container image, which contains no other program.
type readyCommand struct {
	outputFlags
	DataDir string `help:"Data directory of the service." default:"./data" type:"path"`
}

// Run requests /readyz and prints the unhealthy components.
func (c *readyCommand) Run(ctx context.Context, out Output) error {
	bound, err := installation.Dir(c.DataDir).Endpoints()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(
		ctx, http.MethodGet, "http://"+installation.Dialable(bound.Admin)+"/readyz", nil,
	)
	if err != nil {
		return err
	}
	answer, err := installation.HTTPClient(0).Do(request)
	if err != nil {
		return fmt.Errorf("the service does not answer: %w", err)
	}
	defer answer.Body.Close()
	var body struct {
		Ready      bool                `json:"ready"`
		Degraded   bool                `json:"degraded"`
		Components []httpapi.Component `json:"components"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return fmt.Errorf("the service answered %s: %w", answer.Status, err)
	}
	var missing []string
	for _, component := range body.Components {
		if !component.OK {
			missing = append(missing, component.Name+": "+component.Detail)
		}
	}
	faults := strings.Join(missing, "; ")
	switch {
	case body.Degraded:
		return c.print(out.Out, field{"state", "degraded"}, field{"faults", faults})
	case body.Ready:
		return c.print(out.Out, field{"state", "ready"})
	}
	return errors.New("not ready: " + faults)
}
