package directory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

const hub domain.HubID = "hub-7k2m-q4xd-93ta"

// world is a directory with two organizations of two sites each. Its service records the sequences
// that it waited for. Every hub has connected and is online.
type world struct {
	*directory.Service
	log         *directory.Log
	connections *installationtest.Connections
	mailbox     *installationtest.Mailbox
	orgA, orgB  string
	sitesA      []string
	sitesB      []string

	mu          sync.Mutex
	readable    []uint64 // sequences that AwaitReadModels was called with
	applied     []uint64 // sequences that AwaitReplicas was called with
	errReplicas error    // what AwaitReplicas returns
}

// lastSequence is the last sequence of every hub's stream.
const lastSequence = 77

func newWorld(t *testing.T, conns *streams.Conns) *world {
	t.Helper()
	w := &world{
		log: open(t, conns), connections: &installationtest.Connections{},
		mailbox: &installationtest.Mailbox{},
	}
	w.Service = directory.NewService(w.log, directory.ServiceConfig{
		Environment: domain.EnvironmentDev, Presence: installationtest.Presence{Online: true},
		Connections: w.connections, Logs: installationtest.LastSequence(lastSequence),
		Mailer: w.mailbox,
		AwaitReadModels: func(_ context.Context, seq uint64) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.readable = append(w.readable, seq)
			return nil
		},
		AwaitReplicas: func(_ context.Context, seq uint64) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.applied = append(w.applied, seq)
			return w.errReplicas
		},
	})
	for _, org := range []struct {
		id    *string
		sites *[]string
		name  string
	}{{&w.orgA, &w.sitesA, "A"}, {&w.orgB, &w.sitesB, "B"}} {
		var err error
		*org.id, _, err = w.CreateOrg(t.Context(), origin, org.name, "owner@example.org")
		streamstest.Must(t, err)
		for i := range 2 {
			site, err := w.CreateSite(t.Context(), origin, *org.id, fmt.Sprint("Site ", i))
			streamstest.Must(t, err)
			*org.sites = append(*org.sites, site.ID)
		}
	}
	return w
}

// secretHash returns the hash of the enrolment secret of hubs that register adds.
func secretHash() []byte { return domain.HashEnrolmentSecret("secret") }

func (w *world) register(t *testing.T, id domain.HubID) {
	t.Helper()
	streamstest.Must(t, w.RegisterHub(t.Context(), origin, id, secretHash()))
}

// add adds the hub to the first site of the first organization.
func (w *world) add(t *testing.T) domain.HubState {
	t.Helper()
	state, err := w.AddHub(
		t.Context(), origin, domain.AddHub{OrgID: w.orgA, HubID: hub, SiteID: w.sitesA[0]},
	)
	streamstest.Must(t, err)
	return state
}

// waited returns the sequences that the service waited for since the last call.
func (w *world) waited() (readable, applied []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	readable, applied = w.readable, w.applied
	w.readable, w.applied = nil, nil
	return readable, applied
}

func wantCode(t *testing.T, err error, code domain.Code) {
	t.Helper()
	if err == nil || domain.CodeOf(err) != code {
		t.Errorf("got error %v, want %s", err, code)
	}
}

func TestSites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	site, err := w.CreateSite(t.Context(), origin, w.orgA, "  Harbour ")
	if err != nil || site.Name != "Harbour" || site.OrgID != w.orgA ||
		!site.CreatedAt.Equal(origin.At) ||
		!domain.IsUUID(site.ID) {
		t.Fatalf("got %+v, %v", site, err)
	}
	head, err := w.log.Head(t.Context(), 0)
	streamstest.Must(t, err)
	if readable, _ := w.waited(); readable[len(readable)-1] != head {
		t.Errorf("waited for %v, the head is %d", readable, head)
	}
	renamed, err := w.RenameSite(t.Context(), origin, w.orgA, site.ID, "Quay")
	if err != nil || renamed.Name != "Quay" || renamed.ID != site.ID {
		t.Errorf("got %+v, %v", renamed, err)
	}
	// An unchanged name stores nothing, but the service still waits for the last change.
	if _, err := w.RenameSite(t.Context(), origin, w.orgA, site.ID, "Quay"); err != nil {
		t.Error(err)
	}
	if readable, _ := w.waited(); !slices.Equal(readable, []uint64{head + 1, head + 1}) {
		t.Errorf("waited for %v after %d", readable, head)
	}
	// These ids would match the subjects of other aggregates.
	for _, id := range []string{
		"", "*", ">", w.orgA + ".", w.orgA + "." + site.ID, strings.ToUpper(site.ID),
	} {
		_, err = w.RenameSite(t.Context(), origin, w.orgA, id, "X")
		wantCode(t, err, domain.CodeNotFound)
		_, err = w.CreateSite(t.Context(), origin, id, "X")
		wantCode(t, err, domain.CodeNotFound)
	}
	if now, err := w.log.Head(t.Context(), 0); err != nil || now != head+1 {
		t.Errorf("rejected commands were stored: head is %d, want %d", now, head)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	w.waited()
	id, text, err := w.CreateKey(
		t.Context(), origin, w.orgA, "", []domain.Scope{domain.ScopeSitesRead}, domain.KeyLimits{},
	)
	streamstest.Must(t, err)
	key, err := domain.ParseKey(text)
	if err != nil || key.ID != id || key.Environment != domain.EnvironmentDev {
		t.Errorf("got %v, %v", key, err)
	}
	if readable, applied := w.waited(); len(readable) != 1 || !slices.Equal(readable, applied) {
		t.Errorf(
			"create a key: waited for %v and %v, want one sequence for both", readable, applied,
		)
	}
	_, _, err = w.CreateKey(t.Context(), origin, w.orgA, "", nil, domain.KeyLimits{})
	wantCode(t, err, domain.CodeInvalidRequest)
	_, _, err = w.CreateKey(t.Context(), origin, strings.Repeat("*", 36), "", domain.AllScopes(), domain.KeyLimits{})
	wantCode(t, err, domain.CodeNotFound)

	limits := domain.KeyLimits{Sites: w.sitesA[:1]}
	streamstest.Must(t, w.ChangeKey(t.Context(), origin, id, w.orgA, limits))
	limits.Sites = []string{id}
	wantCode(
		t, w.ChangeKey(t.Context(), origin, id, w.orgA, limits), domain.CodeInvalidRequest,
	)
	text, err = w.RotateKey(t.Context(), origin, id, w.orgA, time.Hour)
	if rotated, parseErr := domain.ParseKey(text); err != nil || parseErr != nil ||
		rotated.ID != id || rotated.Secret == key.Secret {
		t.Errorf("rotate: got %v, %v, want the key with another secret", rotated, err)
	}
	state, err := w.Key(t.Context(), id)
	if err != nil || !slices.Equal(state.Sites, w.sitesA[:1]) || len(state.Former) != 1 {
		t.Errorf("Key: got %+v, %v, want its sites and the former secret", state, err)
	}
	for _, key := range []string{id, "000000000000", ">"} {
		_, err := w.RotateKey(t.Context(), origin, key, w.orgB, 0)
		wantCode(t, err, domain.CodeNotFound)
	}
	w.waited()
	wantCode(t, w.RevokeKey(t.Context(), origin, id, w.orgB), domain.CodeNotFound)
	wantCode(t, w.RevokeKey(t.Context(), origin, "000000000000", ""), domain.CodeNotFound)
	wantCode(t, w.RevokeKey(t.Context(), origin, ">", ""), domain.CodeNotFound)
	if _, applied := w.waited(); len(applied) != 0 {
		t.Errorf("rejected commands waited for %v", applied)
	}
	// A revocation that not every replica has confirmed is an error, and may be repeated.
	w.errReplicas = context.DeadlineExceeded
	if err := w.RevokeKey(t.Context(), origin, id, ""); !errors.Is(err, directory.ErrNotInForce) ||
		domain.CodeOf(err) != domain.CodeServiceUnavailable {
		t.Errorf("revoke without confirmation: got %v, want ErrNotInForce", err)
	}
	w.errReplicas = nil
	streamstest.Must(t, w.RevokeKey(t.Context(), origin, id, w.orgA))
	if _, applied := w.waited(); len(applied) != 2 || applied[0] != applied[1] {
		t.Errorf("revoke twice: waited for %v, want one sequence twice", applied)
	}
}

func TestAddMoveAndRenameAHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	add := func(c domain.AddHub) (domain.HubState, error) {
		c.HubID = hub
		return w.AddHub(t.Context(), origin, c)
	}
	update := func(c domain.UpdateHub) (domain.HubState, error) {
		return w.UpdateHub(t.Context(), origin, c)
	}
	_, err := add(domain.AddHub{OrgID: w.orgA, SiteID: w.sitesA[0]})
	wantCode(t, err, domain.CodeHubNotAddable)
	w.register(t, hub)
	wantCode(t, w.RegisterHub(t.Context(), origin, hub, secretHash()), domain.CodeInvalidRequest)
	virtual := domain.VirtualHubID(w.orgA)
	for _, id := range []domain.HubID{"HUB.*", virtual} {
		wantCode(t, w.RegisterHub(t.Context(), origin, id, secretHash()), domain.CodeInvalidRequest)
	}
	_, err = w.RotateSecret(t.Context(), origin, virtual, true)
	wantCode(t, err, domain.CodeInvalidRequest)

	_, err = add(domain.AddHub{OrgID: w.orgA, SiteID: w.sitesB[0]})
	wantCode(t, err, domain.CodeNotFound)
	w.waited()
	added := w.add(t)
	if added.OrgID != w.orgA || added.SiteID != w.sitesA[0] || added.Name != nil ||
		added.Epoch.ID.IsZero() || !added.ConnectedWhenAdded {
		t.Fatalf("got %+v", added)
	}
	if readable, applied := w.waited(); len(readable) != 1 || !slices.Equal(readable, applied) {
		t.Errorf("waited for %v by the read models, %v by the replicas", readable, applied)
	}
	moved, err := add(domain.AddHub{OrgID: w.orgA, SiteID: w.sitesA[1]})
	if err != nil || moved.Epoch.ID != added.Epoch.ID {
		t.Errorf("got %+v, %v, want the same epoch", moved, err)
	}
	for _, c := range []domain.UpdateHub{
		{OrgID: w.orgA, HubID: hub, SiteID: &w.sitesB[0]},
		{OrgID: w.orgA, HubID: "hub-0000-0000-0000", SetName: true},
		{OrgID: w.orgA, HubID: "hub.>", SetName: true},
	} {
		_, err := update(c)
		wantCode(t, err, domain.CodeNotFound)
	}
	state, seq, err := w.Hub(t.Context(), hub)
	if err != nil || state.SiteID != w.sitesA[1] || seq == 0 {
		t.Errorf("got %+v, %d, %v", state, seq, err)
	}
	if state, seq, err := w.Hub(t.Context(), "hub.*"); state.Registered || seq != 0 || err != nil {
		t.Errorf("look up an invalid id: got %+v, %d, %v, want an unknown hub", state, seq, err)
	}
}

func TestCertificatesAndLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	first, second := strings.Repeat("a", 64), strings.Repeat("b", 64)
	issue := func(id domain.HubID, fingerprint string) error {
		return w.IssueCertificate(t.Context(), origin, id, domain.IssueCertificate{
			Fingerprint: fingerprint, ExpiresAt: origin.At.Add(time.Hour),
			SecretHash: secretHash(),
		})
	}
	wantCode(t, issue(hub, first), domain.CodeUnauthenticated)
	wantCode(t, issue("hub.>", first), domain.CodeUnauthenticated)
	w.register(t, hub)
	wantCode(t, w.ResetLink(t.Context(), origin, w.orgA, hub), domain.CodeNotFound)
	wantCode(
		t, w.BeginEpoch(t.Context(), origin, hub, domain.BeginEpoch{OwnLog: "l"}),
		domain.CodeNotFound,
	)

	for _, fingerprint := range []string{first, first, second} {
		streamstest.Must(t, issue(hub, fingerprint))
	}
	added := w.add(t)
	if added.Certificate != second {
		t.Fatalf("got %+v, want the second certificate", added)
	}
	wantCode(t, w.ResetLink(t.Context(), origin, w.orgB, hub), domain.CodeNotFound)
	cut := []string{"revoked " + string(hub) + " " + first + "," + second}
	for _, want := range [][]string{cut, nil} {
		err := w.ResetLink(t.Context(), origin, w.orgA, hub)
		if got := w.connections.Calls(); err != nil || !slices.Equal(got, want) {
			t.Errorf("reset the link: got %v, connections %q, want %q", err, got, want)
		}
	}

	for range 2 { // the second time nothing happens
		streamstest.Must(t, w.BeginEpoch(t.Context(), origin, hub, domain.BeginEpoch{
			OwnLog: "second", Through: 3, After: 40,
		}))
	}
	state, _, err := w.Hub(t.Context(), hub)
	streamstest.Must(t, err)
	if state.Certificate != "" ||
		!slices.Equal(state.RevokedCertificates, []string{first, second}) ||
		state.OwnLog != "second" || state.Epoch.After != 40 || state.OwnLogThrough != 3 ||
		state.Epoch.ID == added.Epoch.ID || state.Epoch.ID.IsZero() {
		t.Errorf("got %+v, want both certificates revoked and the second log", state)
	}
}
