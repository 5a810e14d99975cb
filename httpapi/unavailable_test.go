package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/streamstest"
)

// unaccepting is a port whose invitations cannot be accepted at the moment.
type unaccepting struct{ err error }

func (u unaccepting) AcceptInvitation(
	context.Context, domain.Origin, string,
) (domain.Acceptance, error) {
	return domain.Acceptance{}, u.err
}

// The log line of a service_unavailable has a cause, also if the error has none of its own, and also
// for a page: operators see which part has failed.
func TestTheCauseOfUnavailableIsInTheRequestsLine(t *testing.T) {
	t.Parallel()
	fault := fmt.Errorf(
		"%w: %w", domain.Unavailable("the directory cannot be read at the moment"),
		errors.New("nats: no responders"),
	)
	s := start(
		t,
		func(c *Config) { c.Portal = portal.New(portal.Config{Invitations: unaccepting{fault}}) },
	)
	for _, c := range []struct {
		path  string
		fault error
		says  string
	}{
		{"/v1/sites", fault, "no responders"},
		{"/v1/sites", domain.Unavailable("the mails are full"), "the mails are full"},
		{"/portal/invitations/secret", nil, "no responders"},
	} {
		s.fault = c.fault
		a := s.do("GET", c.path, "")
		if a.StatusCode != 503 || strings.Contains(string(a.body), "no responders") {
			t.Errorf("%s: got %d %s, want 503 without the cause", c.path, a.StatusCode, a.body)
		}
		id := a.Header.Get("X-Request-Id")
		streamstest.Eventually(
			t, "the request is logged",
			func() bool { return strings.Contains(s.logged.String(), id) },
		)
		for text := range strings.Lines(s.logged.String()) {
			var line struct {
				Level, Error string
				RequestID    string `json:"request_id"`
			}
			streamstest.Must(t, json.Unmarshal([]byte(text), &line))
			if line.RequestID == id &&
				(line.Level != "WARN" || !strings.Contains(line.Error, c.says)) {
				t.Errorf("%s: got line %s, want a warning with the cause %q", c.path, text, c.says)
			}
		}
	}
}
