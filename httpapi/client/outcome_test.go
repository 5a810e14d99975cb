package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/streams/streamstest"
)

// house is a service with one lock: the stream after a command, and the lock's state.
type house struct {
	// stream is the stream after the command; its first line is the position.
	stream step
	// device answers a reading of the lock.
	device step
}

func (h house) answer(r *http.Request) (*http.Response, error) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/commands"):
		return answer(202, sentJSON)(r)
	case strings.HasSuffix(r.URL.Path, "/stream") && r.Header.Get("Last-Event-ID") == "":
		return events(errSilent, "id: p\n\n")(r)
	case strings.HasSuffix(r.URL.Path, "/stream"):
		return h.stream(r)
	default:
		return h.device(r)
	}
}

// lockAs returns a reading of the lock after a report.
func lockAs(status, value, desiredAt string) step {
	return lockSince("2026-01-02T03:04:07Z", status, value, desiredAt)
}

// lockSince is lockAs with the time of the last report.
func lockSince(observedAt, status, value, desiredAt string) step {
	return answer(
		200,
		`{"id":3,"name":"Door","room":null,"manufacturer":"A","model":"B",`+
			`"channels":[{"key":"lock","endpoint":0,"kind":"lock","unit":null,"available":true,`+
			`"readable":true,"writable":true,"capabilities":{},"value":`+value+`,`+
			`"observed_at":"`+observedAt+`","desired":true,"desired_at":`+desiredAt+`,`+
			`"status":"`+status+`"}]}`,
	)
}

const (
	sentAt    = `"2026-01-02T03:04:06.000006Z"`
	laterAt   = `"2026-01-02T03:04:06.000007Z"`
	earlierAt = `"2026-01-02T03:04:05Z"`
)

// A report of the value from before the command passed for its outcome: the hub's state of a lock
// that had not reported since, or the report to an earlier command that asked for the same. Each
// possible outcome of a command is found through events, readings, or both.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	desired := func(cursor, value string) string {
		return frameOf(cursor, EventChannelDesired, `{"key":"lock","endpoint":0,"value":`+value+`}`)
	}
	observed := func(cursor, value string) string {
		return frameOf(
			cursor, EventChannelObserved, `{"key":"lock","endpoint":0,"value":`+value+`}`,
		)
	}
	others := frameOf(
		"o1", EventChannelObserved, `{"key":"lock","endpoint":1,"value":false}`,
	) + frameOf("o2", EventChannelObserved, `{"key":"battery","endpoint":0,"value":3}`) +
		strings.ReplaceAll(
			observed("o3", "false"), `"device_id":3`, `"device_id":4`,
		) + strings.ReplaceAll(observed("o4", "false"), `"device_id":3`, `"device_id":null`)
	pending := lockAs("pending", "false", sentAt)
	shut, open := lockAs("synchronized", "true", sentAt), lockAs("diverged", "false", sentAt)
	gone := apiError(404, ErrNotFound)
	forbidden := apiError(403, ErrInsufficientScope)
	expired := apiError(410, ErrCursorExpired)
	for name, tt := range map[string]struct {
		stream step
		device step
		status ChannelStatus
		value  string
		want   error
		within time.Duration
	}{
		"done": {
			events(errSilent, desired("a", "true"), observed("b", "true")), shut,
			StatusSynchronized, "true", nil, 0,
		},
		"jammed": {
			events(errSilent, desired("a", "true"), observed("b", "false")), open,
			StatusDiverged, "false", ErrDiverged, 0,
		},
		"the first report counts": {
			events(errSilent, desired("a", "true"), observed("b", "true"), observed("c", "false")),
			open, StatusSynchronized, "true", nil, 0,
		},
		"reports before": {
			events(errSilent, observed("x", "false"), desired("a", "true"), observed("b", "true")),
			shut, StatusSynchronized, "true", nil, 0,
		},
		"an earlier command's": {
			events(
				errSilent, desired("x", "false"), observed("y", "false"), desired("a", "true"),
				observed("b", "true"),
			),
			shut, StatusSynchronized, "true", nil, 0,
		},
		"an earlier command's of the same": {
			events(errSilent, desired("x", "true"), observed("y", "true"), desired("a", "true")),
			pending, StatusPending, "null", ErrNoOutcome, time.Minute,
		},
		"locked before, and reports nothing": {
			events(errSilent, desired("a", "true")),
			lockSince("2026-01-02T03:04:05.000006Z", "synchronized", "true", sentAt),
			StatusPending, "null", ErrNoOutcome, time.Minute,
		},
		"the hub knows the resolution": {
			events(errSilent, desired("a", "true"), observed("b", "1")),
			lockAs("synchronized", "1", sentAt), StatusSynchronized, "1", nil, 0,
		},
		"other channels' reports": {
			events(errSilent, desired("a", "true"), others, observed("b", "true")), shut,
			StatusSynchronized, "true", nil, 0,
		},
		"over a break": {
			events(errBroken, desired("a", "true")), shut,
			StatusSynchronized, "true", nil, 4 * time.Second,
		},
		"superseded": {
			events(errSilent, desired("a", "true"), desired("b", "false"), observed("c", "false")),
			pending, StatusPending, "null", ErrSuperseded, 0,
		},
		"the same asked again": {
			events(errSilent, desired("a", "true"), desired("b", "true"), observed("c", "true")),
			shut, StatusSynchronized, "true", nil, 0,
		},
		"given up": {
			events(errSilent, desired("a", "true")), lockAs("failed", "false", sentAt),
			StatusFailed, "false", ErrFailed, 3 * time.Second,
		},
		"nothing comes of it": {
			events(errSilent, desired("a", "true")), pending, StatusPending, "null", ErrNoOutcome,
			time.Minute,
		},
		"happened before": {
			events(errSilent), lockAs("synchronized", "true", sentAt), StatusSynchronized, "true",
			nil, 4 * time.Second,
		},
		"superseded before": {
			events(errSilent), lockAs("synchronized", "false", laterAt), StatusPending, "null",
			ErrSuperseded, 4 * time.Second,
		},
		"the device is behind": {
			events(errSilent), lockAs("synchronized", "false", earlierAt), StatusPending, "null",
			ErrNoOutcome, time.Minute,
		},
		"device gone": {
			events(errSilent, desired("a", "true")), gone, "", "null", ErrNotFound,
			3 * time.Second,
		},
		"hub gone": {gone, pending, "", "null", ErrNotFound, 0},
		"within a gap": {
			events(errSilent, frameOf("a", EventHubEventsSkipped, `{"from":1,"to":2}`)),
			lockAs("diverged", "false", sentAt), StatusDiverged, "false", ErrDiverged,
			2 * time.Second,
		},
		"device out of reach": {
			events(errSilent, desired("a", "true"), frameOf("b", EventDeviceUnavailable, `{}`)),
			lockAs("failed", "false", sentAt), StatusFailed, "false", ErrFailed, time.Second,
		},
		"no events": {
			expired, lockAs("synchronized", "true", sentAt), StatusSynchronized, "true", nil,
			time.Second,
		},
		"no looks": {
			events(errSilent, desired("a", "true"), observed("b", "true")), forbidden,
			StatusSynchronized, "true", nil, 0,
		},
		"neither": {
			expired, forbidden, StatusPending, "null", ErrResync, 3 * time.Second,
		},
		"channel gone": {
			events(errSilent, desired("a", "true")), answer(200, `{"channels":[]}`), StatusPending,
			"null", ErrNoOutcome, time.Minute,
		},
		"no answer for the device": {
			events(errSilent, desired("a", "true")),
			func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			},
			StatusPending, "null", ErrNoOutcome, time.Minute,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := playing(t, nil, house{tt.stream, tt.device}.answer)
			began := time.Now()
			sent, outcome, err := c.SendAndWait(
				t.Context(), Command{HubID: "hub-1", DeviceID: 3, Key: "lock", Value: true},
				time.Minute,
			)
			if !errors.Is(err, tt.want) || outcome.Status != tt.status ||
				outcome.Value.String() != tt.value ||
				sent.Channel.Status != StatusPending {
				t.Errorf(
					"%s: got %+v, %v, want %s of %s, %v", name, outcome, err, tt.status, tt.value,
					tt.want,
				)
			}
			if took := time.Since(began); took > tt.within {
				t.Errorf("%s: took %s, want at most %s", name, took, tt.within)
			}
			if (outcome.Event != nil) != (tt.within == 0 && outcome.Value != nil) {
				t.Errorf(
					"%s: got event %+v, want one only if an event has the outcome", name,
					outcome.Event,
				)
			}
		})
	}
}

// The position is from before the command, and a command that is not accepted is not waited for.
func TestSendAndWaitSubscribesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := playing(t, nil, events(errSilent, "id: p\n\n"), apiError(422, ErrCommandRefused))
		_, outcome, err := c.SendAndWait(
			t.Context(), Command{HubID: "hub-1", DeviceID: 3, Key: "lock", Value: true},
			time.Minute,
		)
		if !errors.Is(err, ErrCommandRefused) || outcome.Status != "" || len(s.seen()) != 2 ||
			!strings.HasSuffix(s.seen()[0].path, "/stream") {
			t.Errorf(
				"got %+v, %v after %d requests, want no outcome, ErrCommandRefused, 2", outcome,
				err, len(s.seen()),
			)
		}
		c, s = playing(t, nil, apiError(403, ErrInsufficientScope))
		if _, _, err = c.SendAndWait(t.Context(), Command{
			HubID: "hub-1", DeviceID: 3, Key: "lock", Value: true,
		}, time.Minute); !errors.Is(err, ErrInsufficientScope) ||
			len(s.seen()) != 1 {
			t.Errorf(
				"got %v after %d requests, want ErrInsufficientScope after 1, and no command",
				err, len(s.seen()),
			)
		}
	})
}

// The context's deadline and the time limit are different errors.
func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := playing(t, nil, house{events(errSilent), lockAs("pending", "false", sentAt)}.answer)
		sent, err := c.Send(
			t.Context(), Command{HubID: "hub-1", DeviceID: 3, Key: "lock", Value: true},
		)
		streamstest.Must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := c.Outcome(ctx, sent, "p", time.Minute); !errors.Is(
			err, context.DeadlineExceeded,
		) ||
			errors.Is(err, ErrNoOutcome) {
			t.Error(err)
		}
		if _, err := c.Outcome(t.Context(), sent, "p", time.Second); !errors.Is(err, ErrNoOutcome) {
			t.Error(err)
		}
	})
}
