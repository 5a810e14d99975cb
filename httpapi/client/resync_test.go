package client

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// The devices and the cursor to continue from are returned, whether or not the list has the
// position.
func TestResync(t *testing.T) {
	t.Parallel()
	devices := `{"data":[` + listedDeviceJSON + `]}`
	synctest.Test(t, func(t *testing.T) {
		c, s := playing(t, nil, answer(200, devices, "Event-Cursor", "p"))
		if snapshot, err := c.Resync(t.Context(), "hub-1"); err != nil || snapshot.Cursor != "p" ||
			len(snapshot.Devices) != 1 ||
			len(s.seen()) != 1 {
			t.Errorf("got %+v, %v, want one device at p, nil", snapshot, err)
		}
		c, s = playing(
			t, nil, answer(200, devices), events(errSilent, "id: q\n\n"), answer(200, devices),
		)
		if snapshot, err := c.Resync(t.Context(), "hub-1"); err != nil || snapshot.Cursor != "q" ||
			len(snapshot.Devices) != 1 ||
			len(s.seen()) != 3 {
			t.Errorf("got %+v, %v, want one device at q, nil", snapshot, err)
		}
		c, _ = playing(
			t, func(cfg *Config) { cfg.Retry.MaxElapsed = -1 }, apiError(503, ErrHubOffline),
		)
		if _, err := c.Resync(t.Context(), "hub-1"); !errors.Is(err, ErrHubOffline) {
			t.Error(err)
		}
	})
}

// WaitOnline returns whether the hub comes online before its state is read, right after, or much
// later.
func TestWaitOnline(t *testing.T) {
	t.Parallel()
	online := frameOf("c", EventHubConnected, `{}`)
	for name, steps := range map[string][]step{
		"already": {
			events(errSilent, "id: p\n\n"),
			answer(200, strings.Replace(hubJSON, `"offline"`, `"online"`, 1)),
		},
		"later": {
			events(errSilent, "id: p\n\n"), answer(200, hubJSON), events(nil, frames("b")),
			events(errSilent, online),
		},
		"gap": {
			events(errSilent, "id: p\n\n"), answer(200, hubJSON),
			events(nil, frameOf("b", EventHubEventsSkipped, `{"from":1,"to":1}`), online),
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := playing(t, nil, steps...)
			if err := c.WaitOnline(t.Context(), "hub-1"); err != nil ||
				len(s.seen()) != len(steps) {
				t.Errorf(
					"%s: got %v after %d requests, want nil after %d", name, err, len(s.seen()),
					len(steps),
				)
			}
		})
	}
}
