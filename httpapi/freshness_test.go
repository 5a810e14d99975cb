package httpapi

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/domain"
)

// replicaView is a Freshness whose connection to the broker a test can cut.
type replicaView struct {
	stale atomic.Bool
	gone  chan struct{}
	// waits is how long Confirm waits while the loss is not known yet.
	waits time.Duration
}

func (v *replicaView) lose() {
	v.stale.Store(true)
	close(v.gone)
}

func (v *replicaView) Fresh() bool           { return !v.stale.Load() }
func (v *replicaView) Lost() <-chan struct{} { return v.gone }

func (v *replicaView) Confirm(ctx context.Context) error {
	select {
	case <-v.gone:
	case <-time.After(v.waits):
	case <-ctx.Done():
		return ctx.Err()
	}
	if v.Fresh() {
		return nil
	}
	return domain.Unavailable("this server cannot tell which keys are valid")
}

// A revoked key must not work on a replica that has lost the broker, and its streams and long-polls
// must end.
func TestAReplicaThatIsCutOff(t *testing.T) {
	t.Parallel()
	view := &replicaView{}
	inBubble(t, func(cfg *Config) {
		view.gone = make(chan struct{}) // of the bubble
		cfg.Freshness = view
	}, func(s *service, _ *pipeListener) {
		if a := s.do("GET", "/v1/sites", ""); a.StatusCode != 200 {
			t.Fatalf("before the cut: got %d %s, want 200", a.StatusCode, a.body)
		}
		o := s.stream()
		o.expect("id: c0\n\n")
		polled := make(chan answer, 1)
		go func() {
			polled <- s.do("GET", "/v1/hubs/"+string(hubOne)+"/events?after=c0&wait=60", "")
		}()
		synctest.Wait()
		view.lose()
		o.end()
		if a := <-polled; wantError(t, a, 503, domain.CodeServiceUnavailable) == "" ||
			a.Header.Get("Retry-After") == "" {
			t.Errorf("long-poll: got no Retry-After, want one")
		}
		for _, path := range []string{
			"/v1/sites", "/v1/hubs/" + string(hubOne) + "/events", streamPath,
		} {
			a := s.do("GET", path, "")
			wantError(t, a, 503, domain.CodeServiceUnavailable)
			if a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: got no Retry-After, want one", path)
			}
		}
		// An unknown key may be valid, so it gets 503 too; a request without a key gets 401.
		wantError(
			t,
			s.do("GET", "/v1/sites", "", "Authorization", strings.Replace(s.bearer, "1", "2", 1)),
			503, domain.CodeServiceUnavailable,
		)
		wantError(
			t, s.do("GET", "/v1/sites", "", "Authorization", ""), 401, domain.CodeUnauthenticated,
		)
		synctest.Wait()
		if log := s.logged.String(); strings.Contains(log, `"level":"ERROR"`) ||
			!strings.Contains(log, `"ended":"broker_lost"`) {
			t.Errorf("got log %s, want broker_lost and no error", log)
		}
	})
}

// A process that was suspended may hold events from after the key was revoked: it must check before
// sending.
func TestAStreamOfAProcessThatWakesUp(t *testing.T) {
	t.Parallel()
	view := &replicaView{}
	inBubble(t, func(cfg *Config) {
		view.gone = make(chan struct{})
		cfg.Freshness = view
	}, func(s *service, _ *pipeListener) {
		o := s.stream()
		o.expect("id: c0\n\n")
		view.waits = time.Second
		view.stale.Store(true)
		time.AfterFunc(500*time.Millisecond, func() {
			view.stale.Store(false)
			s.revoke()
		})
		s.emit(1, 0)
		if rest := o.end(); strings.Contains(rest, "data:") {
			t.Errorf("stream of a revoked key: got %q, want no event", rest)
		}
	})
}

// A request that runs out of time must not get internal_error, which clients do not retry.
func TestARequestThatIsNotFinishedInTimeIsUnavailable(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.fault = context.DeadlineExceeded
	a := s.do("GET", "/v1/sites", "")
	wantError(t, a, 503, domain.CodeServiceUnavailable)
	if a.Header.Get("Retry-After") == "" {
		t.Error("got no Retry-After, want one")
	}
}
