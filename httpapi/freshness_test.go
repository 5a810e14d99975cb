package httpapi

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/domain"
)

// replicaView is a Freshness that a test cuts off.
type replicaView struct {
	stale atomic.Bool
	gone  chan struct{}
	lose  func()
	// waits is how long Confirm waits, when it does not know yet that the replica is cut off.
	waits time.Duration
}

func newReplicaView() *replicaView {
	v := &replicaView{gone: make(chan struct{})}
	v.lose = sync.OnceFunc(func() {
		v.stale.Store(true)
		close(v.gone)
	})
	return v
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

// A revoked key worked on a replica that was cut off from the broker, for as long as that lasted,
// and its streams and long-polls hung without a word.
func TestAReplicaThatIsCutOff(t *testing.T) {
	t.Parallel()
	view := newReplicaView()
	inBubble(t, func(cfg *Config) {
		view.gone = make(chan struct{}) // of the bubble
		view.lose = sync.OnceFunc(func() {
			view.stale.Store(true)
			close(view.gone)
		})
		cfg.Freshness = view
	}, func(s *service, _ *pipeListener) {
		if a := s.do("GET", "/v1/sites", ""); a.StatusCode != 200 {
			t.Fatalf("before: %d %s", a.StatusCode, a.body)
		}
		o := s.stream()
		o.expect("id: c0\n\n")
		polled := make(chan answer, 1)
		go func() { polled <- s.do("GET", "/v1/hubs/"+string(hubOne)+"/events?after=c0&wait=60", "") }()
		synctest.Wait()
		view.lose()
		o.end()
		if a := <-polled; refused(t, a, 503, domain.CodeServiceUnavailable) == "" ||
			a.Header.Get("Retry-After") == "" {
			t.Errorf("the long-poll has no Retry-After")
		}
		for _, path := range []string{
			"/v1/sites", "/v1/hubs/" + string(hubOne) + "/events", streamPath,
		} {
			a := s.do("GET", path, "")
			refused(t, a, 503, domain.CodeServiceUnavailable)
			if a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", path)
			}
		}
		// Whether an unknown key is valid is not known either; without a key nothing has to be
		// known.
		refused(
			t,
			s.do("GET", "/v1/sites", "", "Authorization", strings.Replace(s.bearer, "1", "2", 1)),
			503, domain.CodeServiceUnavailable,
		)
		refused(
			t, s.do("GET", "/v1/sites", "", "Authorization", ""), 401, domain.CodeUnauthenticated,
		)
		synctest.Wait()
		if log := s.logged.String(); strings.Contains(log, `"level":"ERROR"`) ||
			!strings.Contains(log, `"ended":"broker_lost"`) {
			t.Errorf("the log says %s", log)
		}
	})
}

// A process that was stopped may hold events that came after the revocation of the key that streams
// them: it asks before it sends.
func TestAStreamOfAProcessThatWakesUp(t *testing.T) {
	t.Parallel()
	view := newReplicaView()
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
			t.Errorf("a stream of a revoked key sent %q", rest)
		}
	})
}

// What did not end in time was a fault of the service, which clients do not repeat.
func TestARequestThatIsNotFinishedInTimeIsUnavailable(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.fault = context.DeadlineExceeded
	a := s.do("GET", "/v1/sites", "")
	refused(t, a, 503, domain.CodeServiceUnavailable)
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
