package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"hubcloud/streams/streamstest"
)

// kinds has a call of each kind that is retried differently.
var kinds = map[string]func(context.Context, *Client) error{
	"read": func(ctx context.Context, c *Client) error {
		_, err := c.Hub(ctx, "hub-1")
		return err
	},
	"change": func(ctx context.Context, c *Client) error {
		_, err := c.UpdateHub(ctx, "hub-1", HubUpdate{Name: SetTo("Lobby")})
		return err
	},
	"command": func(ctx context.Context, c *Client) error {
		_, err := c.Send(ctx, Command{HubID: "hub-1", DeviceID: 1, Key: "lock", Value: true})
		return err
	},
	"creation": func(ctx context.Context, c *Client) error {
		_, err := c.CreateSite(ctx, "Home")
		return err
	},
	"reset": func(ctx context.Context, c *Client) error { return c.ResetLink(ctx, "hub-1") },
}

// Errors are retried as the contract's table says, and no others.
func TestWhatIsRepeated(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		kind   ErrorType
		again  bool
	}{
		{400, ErrInvalidRequest, false}, {401, ErrUnauthenticated, false},
		{403, ErrInsufficientScope, false}, {403, ErrForbidden, false},
		{404, ErrNotFound, false}, {409, ErrIdempotencyConflict, false},
		{410, ErrCursorExpired, false}, {422, ErrCommandRefused, false},
		{422, ErrHubNotAddable, false}, {429, ErrRateLimited, true}, {500, ErrInternal, true},
		{502, ErrHubError, true},
		{503, ErrHubOffline, true}, {503, ErrHubUnavailable, true}, {504, ErrHubTimeout, true},
		{418, "new_type", false},
	} {
		for name, do := range kinds {
			synctest.Test(t, func(t *testing.T) {
				c, s := playing(
					t, nil, apiError(tt.status, tt.kind), apiError(tt.status, tt.kind),
					answer(200, `{}`),
				)
				err := do(t.Context(), c)
				if tt.again {
					if err != nil || len(s.seen()) != 3 {
						t.Errorf(
							"%s, %d %s: got %d tries, %v, want 3, nil", name, tt.status, tt.kind,
							len(s.seen()), err,
						)
					}
					return
				}
				apiErr, ok := errors.AsType[*Error](err)
				if len(s.seen()) != 1 || !ok || !errors.Is(err, tt.kind) ||
					apiErr.Status != tt.status ||
					apiErr.Message != "told" ||
					apiErr.RequestID != "01ABC" {
					t.Errorf(
						"%s, %d %s: got %d tries, %v, want 1 and the error of the answer", name,
						tt.status, tt.kind, len(s.seen()), err,
					)
				}
			})
		}
	}
}

// All attempts of a command carry the same idempotency key, and two commands never do.
func TestCommandsKeepTheirKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := playing(
			t, nil, broken, apiError(504, ErrHubTimeout),
			apiError(429, ErrRateLimited, "Retry-After", "1"), apiError(500, ErrInternal),
			answer(202, `{}`),
		)
		command := Command{HubID: "hub-1", DeviceID: 1, Key: "lock", Value: true}
		sent, err := c.Send(t.Context(), command)
		streamstest.Must(t, err)
		first := s.seen()
		if len(first) != 5 || len(sent.IdempotencyKey) < 20 {
			t.Fatalf(
				"got %d tries with the key %q, want 5 with a long key", len(first),
				sent.IdempotencyKey,
			)
		}
		for _, r := range first {
			if r.header.Get("Idempotency-Key") != sent.IdempotencyKey || r.body != first[0].body {
				t.Errorf(
					"got key %q, body %s, want those of the first try",
					r.header.Get("Idempotency-Key"), r.body,
				)
			}
		}
		if another, err := c.Send(t.Context(), command); err != nil ||
			another.IdempotencyKey == sent.IdempotencyKey {
			t.Errorf(
				"second command: got the key of the first, %q, %v, want another",
				another.IdempotencyKey, err,
			)
		}
		command.IdempotencyKey = "mine"
		if own, err := c.Send(t.Context(), command); err != nil || own.IdempotencyKey != "mine" {
			t.Errorf("got key %q, %v, want mine, nil", own.IdempotencyKey, err)
		}
	})
}

func TestIdempotencyKeysThatCannotBeSent(t *testing.T) {
	t.Parallel()
	c, s := playing(t, nil, answer(202, `{}`))
	for _, key := range []string{strings.Repeat("x", 256), " a", "a ", "a\nb", "ä"} {
		if _, err := c.Send(t.Context(), Command{
			HubID: "hub-1", Key: "lock", Value: true, IdempotencyKey: key,
		}); !errors.Is(err, ErrInvalidRequest) {
			t.Errorf("key %q: got %v, want ErrInvalidRequest", key, err)
		}
	}
	if _, err := c.Send(t.Context(), Command{
		HubID: "hub-1", Key: "lock", Value: func() {},
	}); !errors.Is(err, ErrInvalidRequest) {
		t.Errorf("value that is not JSON: got %v, want ErrInvalidRequest", err)
	}
	if len(s.seen()) != 0 {
		t.Error("got a request, want none")
	}
}

// The wait after Retry-After is never shorter than asked for, and not much longer.
func TestRetryAfterIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status     int
		after      string
		min, atMax time.Duration
	}{
		{429, "7", 7 * time.Second, 8 * time.Second},
		{503, "20", 20 * time.Second, 21 * time.Second},
		// a bubble begins at midnight of that day
		{429, "Sat, 01 Jan 2000 00:00:30 GMT", 30 * time.Second, 31 * time.Second},
		{429, "soon", 100 * time.Millisecond, 200 * time.Millisecond},
		{500, "", 100 * time.Millisecond, 200 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := playing(
				t, nil, apiError(tt.status, ErrRateLimited, "Retry-After", tt.after),
				answer(200, `{}`),
			)
			if _, err := c.Hub(t.Context(), "hub-1"); err != nil {
				t.Fatal(err)
			}
			if waited := s.seen()[1].at.Sub(s.seen()[0].at); waited < tt.min || waited > tt.atMax {
				t.Errorf(
					"Retry-After %q: waited %s, want %s to %s", tt.after, waited, tt.min, tt.atMax,
				)
			}
		})
	}
}

// A wait that would exceed the call's bounds is not begun; the call returns the last error.
func TestNoWaitInVain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		retry   Retry
		timeout time.Duration
		step    step
		tries   int
		want    error
	}{
		"Retry-After beyond MaxElapsed": {
			Retry{MaxElapsed: 5 * time.Second}, time.Hour,
			apiError(429, ErrRateLimited, "Retry-After", "6"), 1, ErrRateLimited,
		},
		"Retry-After beyond the deadline": {
			Retry{}, 5 * time.Second, apiError(429, ErrRateLimited, "Retry-After", "6"), 1,
			ErrRateLimited,
		},
		"never again": {
			Retry{MaxElapsed: -1}, time.Hour, apiError(500, ErrInternal), 1, ErrInternal,
		},
		"never again, broken": {Retry{MaxElapsed: -1}, time.Hour, broken, 1, errBroken},
		"an exception": {
			Retry{Except: []ErrorType{ErrHubOffline}}, time.Hour, apiError(503, ErrHubOffline), 1,
			ErrHubOffline,
		},
		"an exception of another kind": {
			Retry{MaxElapsed: 250 * time.Millisecond, Except: []ErrorType{ErrHubOffline}},
			time.Hour, apiError(503, ErrHubUnavailable), 2, ErrHubUnavailable,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := playing(t, func(cfg *Config) { cfg.Retry = tt.retry }, tt.step)
			ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
			defer cancel()
			began := time.Now()
			_, err := c.Hub(ctx, "hub-1")
			if !errors.Is(err, tt.want) || len(s.seen()) != tt.tries ||
				time.Since(began) > 250*time.Millisecond {
				t.Errorf(
					"%s: got %d tries in %s, %v, want %d, %v", name, len(s.seen()),
					time.Since(began), err, tt.tries, tt.want,
				)
			}
		})
	}
}

// The end of the context ends the wait and the call.
func TestCancelledCallsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := playing(t, nil, apiError(429, ErrRateLimited, "Retry-After", "30"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		if _, err := c.Hub(ctx, "hub-1"); err == nil || time.Since(began) != time.Second {
			t.Errorf("got %v after %s, want an error after 1s", err, time.Since(began))
		}
	})
}

// After a failed connection only calls that may run twice are retried.
func TestFailedConnections(t *testing.T) {
	t.Parallel()
	traced := func(wrote bool) step {
		return func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("api.test:80")
			if wrote {
				trace.WroteHeaders()
			}
			return nil, errBroken
		}
	}
	cutOff := func(r *http.Request) (*http.Response, error) {
		body := io.MultiReader(
			strings.NewReader(`{"id":"hu`), iotest.ErrReader(io.ErrUnexpectedEOF),
		)
		return respond(r, 200, io.NopCloser(body)), nil
	}
	for name, step := range map[string]step{
		"before anything was sent": traced(false), "after the request": traced(true),
		"nobody knows when": broken, "within the answer": cutOff,
	} {
		for kind, do := range kinds {
			synctest.Test(t, func(t *testing.T) {
				c, s := playing(t, nil, step, answer(200, `{}`))
				err := do(t.Context(), c)
				want := kind != "reset" || name == "before anything was sent"
				if again := len(s.seen()) == 2; again != want || again != (err == nil) {
					t.Errorf(
						"%s, %s: got %d tries, %v, want a retry: %t", name, kind, len(s.seen()),
						err, want,
					)
				}
			})
		}
	}
}

// Each attempt has a timeout.
func TestSilentServicesAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		c, s := playing(t, nil, silent, answer(200, `{}`))
		if _, err := c.Hub(t.Context(), "hub-1"); err != nil || len(s.seen()) != 2 {
			t.Errorf("got %d tries, %v, want 2, nil", len(s.seen()), err)
		}
		if waited := s.seen()[1].at.Sub(s.seen()[0].at); waited < 40*time.Second ||
			waited > 41*time.Second {
			t.Errorf("waited %s for an answer, want 40 s", waited)
		}
		c, _ = playing(t, func(cfg *Config) { cfg.Retry.MaxElapsed = -1 }, silent)
		if _, err := c.Hub(t.Context(), "hub-1"); err == nil ||
			!strings.Contains(err.Error(), "no answer within 40s") {
			t.Errorf("got %v, want one that names the 40 s", err)
		}
	})
}

// A removal whose answer was lost is a success when the retry gets not_found.
func TestRemovalsWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first step
		want  error
	}{
		"lost":                 {broken, nil},
		"no answer of the hub": {apiError(504, ErrHubTimeout), nil},
		"nothing was done":     {apiError(503, ErrHubOffline), ErrNotFound},
		"too many requests":    {apiError(429, ErrRateLimited), ErrNotFound},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := playing(t, nil, tt.first, apiError(404, ErrNotFound))
			if err := c.ForgetDevice(t.Context(), "hub-1", 3); !errors.Is(err, tt.want) {
				t.Errorf("%s: got %v, want %v", name, err, tt.want)
			}
		})
	}
}

// A proxy between client and service may answer in its place.
func TestAnswersOfOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		step  step
		check func(err error) bool
	}{
		"a page that says 200": {
			answer(200, "<html>Welcome to the hotel"),
			func(err error) bool { return errors.Is(err, ErrProtocol) },
		},
		"nothing": {
			answer(200, ""), func(err error) bool { return errors.Is(err, ErrProtocol) },
		},
		"an endless answer": {func(r *http.Request) (*http.Response, error) {
			return respond(r, 200, io.NopCloser(io.LimitReader(endless{}, maxAnswer+10))), nil
		}, func(err error) bool { return errors.Is(err, ErrProtocol) }},
		"a proxy's 404": {answer(404, "no\xffsuch host"), func(err error) bool {
			e, ok := errors.AsType[*Error](err)
			return ok && e.Type == "" && e.Status == 404 && !errors.Is(err, ErrNotFound) &&
				strings.Contains(e.Error(), "such host")
		}},
		"an error of another shape": {
			answer(400, `{"error":"bad"}`, "X-Request-Id", "01X"), func(err error) bool {
				e, ok := errors.AsType[*Error](err)
				return ok && e.Type == "" && e.RequestID == "01X"
			},
		},
	} {
		c, s := playing(t, nil, tt.step)
		if _, err := c.Hub(t.Context(), "hub-1"); !tt.check(err) || len(s.seen()) != 1 {
			t.Errorf("%s: got %d tries, %v, want 1 and another error", name, len(s.seen()), err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
