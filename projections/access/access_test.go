package access_test

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/access"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/readmodel"
	"hubcloud/projections/schema"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

func newService(
	w *projectionstest.Env, settled func(context.Context, uint64) error,
) *directory.Service {
	return directory.NewService(
		w.Directory,
		directory.ServiceConfig{Environment: domain.EnvironmentDev, AwaitReadModels: settled},
	)
}

func TestIndexIsTheSameFromEitherSource(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	stop := w.Project(t, s).Stop
	service := newService(w, s.WaitFor)
	origin := domain.Origin{Actor: projectionstest.Operator}
	orgID, _, err := service.CreateOrg(t.Context(), origin, "Org", "a@example.org")
	streamstest.Must(t, err)
	keyID, key, err := service.CreateKey(
		t.Context(), origin, orgID, "one",
		[]domain.Scope{domain.ScopeHubsRead, domain.ScopeEventsRead}, domain.KeyLimits{},
	)
	streamstest.Must(t, err)
	removed, _, err := service.CreateKey(t.Context(), origin, orgID, "two", domain.AllScopes(), domain.KeyLimits{})
	if err == nil {
		err = service.RevokeKey(t.Context(), origin, removed, orgID)
	}
	streamstest.Must(t, err)
	site, err := service.CreateSite(t.Context(), origin, orgID, "Site")
	streamstest.Must(t, err)
	limits := domain.KeyLimits{
		Sites: []string{site.ID}, ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Second),
	}
	streamstest.Must(t, service.ChangeKey(t.Context(), origin, keyID, orgID, limits))
	former := key
	if key, err = service.RotateKey(t.Context(), origin, keyID, orgID, time.Hour); err != nil {
		t.Fatal(err)
	}
	w.AddHub(t, org, 1, 1)
	w.Do(
		t, s, streams.HubSubject(projectionstest.HubID(1)),
		domain.HubLogBegun{
			HubID: projectionstest.HubID(1), OrgID: org, EpochID: domain.NewEpochID(0xcafe0123),
			After: 77,
		},
	)
	stop()
	behind := w.AddHub(t, org, 2, 1) // after what the read models have

	for name, store := range map[string]*readmodel.Store{
		"from the read models": s, "from the directory": nil,
	} {
		a := w.RunIndex(t, store)
		projectionstest.Await(t, a, behind)
		got, ok := a.Key(keyID)
		parsed, err := domain.ParseKey(key)
		if !ok || err != nil || parsed.SecretHash() != got.SecretHash || got.Reach.OrgID != orgID ||
			got.ID != keyID ||
			got.Environment != domain.EnvironmentDev ||
			!reflect.DeepEqual(got.Scopes, []domain.Scope{
				domain.ScopeHubsRead, domain.ScopeEventsRead,
			}) {
			t.Errorf("%s: Key: got %+v, %v, want the key that was created", name, got, err)
		}
		before, _ := domain.ParseKey(former)
		hash := before.SecretHash()
		if !slices.Equal(got.Reach.Sites, limits.Sites) || !got.ExpiresAt.Equal(limits.ExpiresAt) ||
			len(got.Former) != 1 || !bytes.Equal(got.Former[0].Hash, hash[:]) {
			t.Errorf("%s: Key: got %+v, want its limits and its former secret", name, got)
		}
		if _, ok := a.Key(removed); ok {
			t.Errorf("%s: Key returns a revoked key", name)
		}
		for hub, want := range map[domain.HubID]domain.Epoch{
			projectionstest.HubID(1): {ID: domain.NewEpochID(0xcafe0123), After: 77},
			projectionstest.HubID(2): {ID: domain.NewEpochID(2)},
		} {
			got, ok := a.Hub(hub)
			if !ok || !reflect.DeepEqual(got, domain.HubAccess{
				OrgID: org, SiteID: projectionstest.SiteID(1), Epoch: want,
			}) {
				t.Errorf("%s: hub %s is %+v, want %s, %+v", name, hub, got, org, want)
			}
		}
		if _, ok := a.Hub(projectionstest.HubID(3)); ok {
			t.Errorf("%s: Hub returns a hub that was never added", name)
		}
		if a.Applied() != behind || a.Ready() != nil {
			t.Errorf(
				"%s: Applied() = %d, Ready() = %v, want the last event and nil", name, a.Applied(),
				a.Ready(),
			)
		}
	}
}

// Read models of another directory that end with the same sequence were accepted for a moment.
func TestReadModelsOfAnotherStreamAreNotUsed(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	stop := w.Project(t, s).Stop
	w.AddHub(t, org, 1, 1)
	projectionstest.Await(t, s, w.AddHub(t, org, 2, 1))
	stop()
	elsewhere := projectionstest.New(t)
	for n := range 3 {
		last := elsewhere.AddHub(t, other, 3+n, 1) // shorter, as long, longer
		a := elsewhere.RunIndex(t, s)
		projectionstest.Await(t, a, last)
		if _, ok := a.Hub(projectionstest.HubID(1)); ok {
			t.Errorf("stream %d: Hub returns a hub of the other stream", n)
		}
		if _, ok := a.Hub(projectionstest.HubID(3 + n)); !ok {
			t.Errorf("stream %d: Hub does not return a hub of its own stream", n)
		}
	}
}

func TestIndexWithoutADatabase(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	last := w.AddHub(t, org, 1, 1)
	s.Close() // as if the database were away
	a := w.RunIndex(t, s)
	projectionstest.Await(t, a, last)
	if _, ok := a.Hub(projectionstest.HubID(1)); !ok {
		t.Error("Hub does not return the hub")
	}
}

// An unreadable event stops nothing. If it is about a key, the key is suspended, since the event
// might revoke it, until the event is skipped.
func TestUnreadableEventSuspendsItsKey(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	key, other := fmt.Sprintf("%012d", 1), fmt.Sprintf("%012d", 2)
	for _, id := range []string{key, other} {
		w.Append(t, streams.KeySubject(id), domain.KeyCreated{
			KeyID: id, OrgID: org, Environment: domain.EnvironmentDev, Scopes: domain.AllScopes(),
			SecretHash: make([]byte, 32),
		})
	}
	a := access.New(access.Config{Directory: w.Directory, Logger: projectionstest.Logger(t)})
	streamstest.Run(t, "access", a.Run)
	projectionstest.Await(t, a, w.AddHub(t, org, 1, 1))
	opened, ok := a.Key(key)
	if !ok {
		t.Fatal("Key does not return the key")
	}
	w.StoreRaw(t, streams.HubSubject(projectionstest.HubID(9)), []byte("rubbish"))
	first := w.StoreRaw(t, streams.KeySubject(key), []byte(`{"type":"key.frozen","v":1}`))
	second := w.StoreRaw(t, streams.KeySubject(key), []byte("rubbish"))
	projectionstest.Await(t, a, w.AddHub(t, org, 2, 1))
	if _, ok := a.Hub(projectionstest.HubID(2)); !ok || a.Ready() != nil || a.Unread() != 3 {
		t.Errorf("Ready() = %v with %d unread events, want nil with 3", a.Ready(), a.Unread())
	}
	if _, ok := a.Key(key); ok {
		t.Error("Key returns a key that may be revoked")
	}
	select {
	case <-opened.Revoked:
	default:
		t.Error("Revoked of a suspended key is open")
	}
	if _, ok := a.Key(other); !ok {
		t.Error("Key does not return another key")
	}
	skip := func(seq uint64) {
		t.Helper()
		streamstest.Must(t, w.Directory.Skip(t.Context(), domain.Origin{
			At: time.Now(), Actor: projectionstest.Operator,
		}, domain.ProjectionSkipped{
			Projection: schema.Directory, Sequence: seq, Why: "a test",
		}))
		head, err := w.Directory.Head(t.Context(), 0)
		streamstest.Must(t, err)
		projectionstest.Await(t, a, head)
	}
	skip(first)
	if _, ok := a.Key(key); ok {
		t.Error("Key returns a key that another event may revoke")
	}
	skip(second)
	if _, ok := a.Key(key); !ok {
		t.Error("Key does not return the key although all events were skipped")
	}
}

// The index must stay small beside the event logs of the hubs.
func TestIndexIsSmall(t *testing.T) {
	const hubs = 20_000
	a := access.New(access.Config{Logger: projectionstest.Logger(t)})
	before := heap()
	batch := make([]directory.Recorded, 0, hubs)
	for n := range hubs {
		id := domain.HubID(fmt.Sprintf("hub-%04d-%04d-0000", n/10000, n%10000))
		batch = append(batch, directory.Recorded{Seq: uint64(n + 1), Fact: domain.HubAdded{
			HubID: id, OrgID: fmt.Sprintf("01930000-0000-7000-8000-%012d", n/100),
			EpochID: domain.NewEpochID(uint32(n)),
		}})
	}
	streamstest.Must(t, a.Apply(batch))
	batch = nil
	each := (heap() - before) / hubs
	t.Logf("%d bytes a hub", each)
	if each > 400 {
		t.Errorf("got %d bytes a hub, want at most 400", each)
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
