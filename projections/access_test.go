package projections

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
)

// access runs an Access until the test ends and waits until it is loaded.
func (w *world) access(t *testing.T, s *Store, dir Directory) *Access {
	t.Helper()
	a := NewAccess(s, dir, testLog(t), nil)
	background(t, "access", a.Run)
	loaded(t, a)
	return a
}

func loaded(t *testing.T, a *Access) {
	t.Helper()
	within(t, "loaded", func() bool {
		select {
		case <-a.Loaded():
			return true
		default:
			return false
		}
	})
}

func (w *world) service(settled func(context.Context, uint64) error) *directory.Service {
	return directory.NewService(w.dir, directory.ServiceConfig{Environment: domain.EnvironmentDev, Settled: settled})
}

func TestAccessIsTheSameFromEitherSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	stop := w.project(t, s)
	service := w.service(s.WaitFor)
	origin := domain.Origin{Actor: byOperator}
	orgID, _, err := service.CreateOrg(t.Context(), origin, "Org", "a@example.org")
	if err != nil {
		t.Fatal(err)
	}
	keyID, key, err := service.CreateKey(t.Context(), origin, orgID, "one", []domain.Scope{domain.ScopeHubsRead, domain.ScopeEventsRead})
	if err != nil {
		t.Fatal(err)
	}
	gone, _, err := service.CreateKey(t.Context(), origin, orgID, "two", domain.AllScopes())
	if err == nil {
		err = service.RevokeKey(t.Context(), origin, gone, orgID)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.hub(t, org, 1, 1)
	await(t, s, w.tell(t, streams.HubSubject(hubID(1)), domain.HubLogBegun{HubID: hubID(1), OrgID: org, Incarnation: "cafe0123", After: 77}))
	stop()
	behind := w.hub(t, org, 2, 1) // after what the read models have

	for name, store := range map[string]*Store{"from the read models": s, "from the directory": nil} {
		a := w.access(t, store, w.dir)
		await(t, a, behind)
		got, ok := a.Key(keyID)
		parsed, err := domain.ParseKey(key)
		if !ok || err != nil || !parsed.Matches(got.SecretHash) || got.OrgID != orgID || got.ID != keyID || got.Environment != domain.EnvironmentDev ||
			!reflect.DeepEqual(got.Scopes, []domain.Scope{domain.ScopeHubsRead, domain.ScopeEventsRead}) {
			t.Errorf("%s: key %+v, %v", name, got, err)
		}
		if _, ok := a.Key(gone); ok {
			t.Errorf("%s: a revoked key is in force", name)
		}
		if hub, ok := a.Hub(hubID(1)); !ok || hub != (domain.HubAccess{OrgID: org, Incarnation: "cafe0123", LogAfter: 77}) {
			t.Errorf("%s: hub %+v", name, hub)
		}
		if hub, ok := a.Hub(hubID(2)); !ok || hub != (domain.HubAccess{OrgID: org, Incarnation: "00000002"}) {
			t.Errorf("%s: hub %+v", name, hub)
		}
		if _, ok := a.Hub(hubID(3)); ok {
			t.Errorf("%s: a hub that nobody has added", name)
		}
		if a.Applied() != behind || a.Ready() != nil {
			t.Errorf("%s: applied %d, %v", name, a.Applied(), a.Ready())
		}
	}
}

func TestARevokedKeyEndsWhatWasOpenedWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.access(t, nil, w.dir)
	service := w.service(a.WaitFor)
	origin := domain.Origin{Actor: byOperator}
	orgID, _, err := service.CreateOrg(t.Context(), origin, "Org", "a@example.org")
	if err != nil {
		t.Fatal(err)
	}
	keyID, _, err := service.CreateKey(t.Context(), origin, orgID, "one", domain.AllScopes())
	if err != nil {
		t.Fatal(err)
	}
	key, ok := a.Key(keyID)
	if !ok {
		t.Fatal("the key is not in force when it has been made")
	}
	select {
	case <-key.Revoked:
		t.Fatal("revoked from the start")
	default:
	}
	if err := service.RevokeKey(t.Context(), origin, keyID, ""); err != nil {
		t.Fatal(err)
	}
	select {
	case <-key.Revoked:
	default:
		t.Error("what was opened with the key goes on")
	}
	if _, ok := a.Key(keyID); ok {
		t.Error("the key is in force")
	}
}

func TestAccessDoesNotBelieveReadModelsOfAnotherStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	stop := w.project(t, s)
	w.hub(t, org, 1, 1)
	await(t, s, w.hub(t, org, 2, 1))
	stop()
	elsewhere := newWorld(t)
	for n := range 3 {
		last := elsewhere.hub(t, other, 3+n, 1) // shorter, as long, longer
		a := elsewhere.access(t, s, elsewhere.dir)
		await(t, a, last)
		if _, ok := a.Hub(hubID(1)); ok {
			t.Errorf("%d: a hub of the other stream has been let in", n)
		}
		if _, ok := a.Hub(hubID(3 + n)); !ok {
			t.Errorf("%d: a hub of its own stream is missing", n)
		}
	}
}

func TestAccessWithoutADatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	last := w.hub(t, org, 1, 1)
	s.pool.Close() // as good as away
	a := w.access(t, s, w.dir)
	await(t, a, last)
	if _, ok := a.Hub(hubID(1)); !ok {
		t.Error("the hub is missing")
	}
}

func TestAccessStandsStillAtWhatItCannotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub(t, org, 1, 1)
	bad := w.hub(t, org, 2, 1)
	w.hub(t, org, 3, 1)
	dir := &patched{Directory: w.dir, seq: bad, patch: func(r *directory.Recorded) { r.Fact, r.Err = nil, domain.ErrUnknownEvent }}
	dir.on.Store(true)
	a := NewAccess(nil, dir, testLog(t), nil)
	a.retryStopped = 0
	background(t, "access", a.Run)
	await(t, a, bad-1)
	within(t, "stopped", func() bool {
		a.mu.RLock()
		defer a.mu.RUnlock()
		var stopped *StoppedError
		return errors.As(a.stopped, &stopped) && stopped.Sequence == bad
	})
	if err := a.Ready(); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("ready: %v", err)
	}
	if _, ok := a.Hub(hubID(3)); ok || a.Applied() != bad-1 {
		t.Errorf("it went on to %d", a.Applied())
	}
	dir.on.Store(false)
	await(t, a, bad+1)
	if err := a.Ready(); err != nil {
		t.Error(err)
	}
}

// What 20,000 hubs cost in memory, printed; it has to stay a small part of what their event logs cost.
func TestAccessIsSmall(t *testing.T) {
	const hubs = 20_000
	a := NewAccess(nil, nil, testLog(t), nil)
	before := heap()
	batch := make([]directory.Recorded, 0, hubs)
	for n := range hubs {
		id := domain.HubID(fmt.Sprintf("hub-%04d-%04d-0000", n/10000, n%10000))
		batch = append(batch, directory.Recorded{Seq: uint64(n + 1), Fact: domain.HubAdded{
			HubID: id, OrgID: fmt.Sprintf("01930000-0000-7000-8000-%012d", n/100), Incarnation: fmt.Sprintf("%08x", n),
		}})
	}
	if _, err := a.apply(batch); err != nil {
		t.Fatal(err)
	}
	batch = nil
	each := (heap() - before) / hubs
	t.Logf("%d bytes a hub", each)
	if each > 400 {
		t.Errorf("%d bytes a hub", each)
	}
	runtime.KeepAlive(a)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
