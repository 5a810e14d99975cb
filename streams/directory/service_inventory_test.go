package directory_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// TestInventoryCommands: a stolen enrolment secret stayed valid, and a hub that the wrong
// organization had added stayed with it.
func TestInventoryCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	const stranger = domain.HubID("hub-none-none-none")
	for name, act := range map[string]func(domain.HubID) error{
		"rotate": func(id domain.HubID) error {
			secret, err := w.RotateSecret(t.Context(), origin, id, false)
			if secret != "" {
				t.Error("got a secret for a hub that is not in the inventory")
			}
			return err
		},
		"block": func(id domain.HubID) error {
			_, err := w.BlockHub(t.Context(), origin, id)
			return err
		},
		"unblock": func(id domain.HubID) error { return w.UnblockHub(t.Context(), origin, id) },
		"release": func(id domain.HubID) error {
			_, err := w.ReleaseHub(t.Context(), origin, id)
			return err
		},
	} {
		if err := act(stranger); domain.CodeOf(err) != domain.CodeNotFound {
			t.Errorf("%s of a hub that is not in the inventory: got %v, want not_found", name, err)
		}
	}
	if calls := w.connections.Calls(); calls != nil {
		t.Errorf("rejected commands cut connections: %q", calls)
	}
	current := func() domain.HubState {
		t.Helper()
		state, _, err := w.Hub(t.Context(), hub)
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	wantCut := func(want ...string) {
		t.Helper()
		if got := w.connections.Calls(); !slices.Equal(got, want) {
			t.Errorf("got connections cut: %q, want %q", got, want)
		}
	}

	w.register(t, hub)
	first, second := strings.Repeat("a", 64), strings.Repeat("b", 64)
	third := strings.Repeat("c", 64)
	issue := func(fingerprint string, secret []byte) error {
		return w.IssueCertificate(t.Context(), origin, hub, domain.IssueCertificate{
			Fingerprint: fingerprint, ExpiresAt: time.Now().Add(time.Hour), SecretHash: secret,
		})
	}
	if err := issue(first, secretHash()); err != nil {
		t.Fatal(err)
	}
	added, err := w.AddHub(
		t.Context(), origin,
		domain.AddHub{OrgID: w.orgA, HubID: hub, SiteID: w.sitesA[0]},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.BeginEpoch(t.Context(), origin, hub, domain.BeginEpoch{
		OwnLog: "second", Through: 3, After: 40,
	}); err != nil {
		t.Fatal(err)
	}

	// The former secret is rejected, even from an enrolment that compared it just before, and the
	// certificate is revoked.
	fresh, err := w.RotateSecret(t.Context(), origin, hub, false)
	if state := current(); err != nil || state.Certificate != "" ||
		!slices.Equal(state.RevokedCertificates, []string{first}) || state.OrgID != w.orgA {
		t.Errorf("rotate: got %+v, %v", state, err)
	}
	wantCut("revoked " + string(hub) + " " + first)
	wantCode(t, issue(second, secretHash()), domain.CodeUnauthenticated)
	if err := issue(second, domain.HashEnrolmentSecret(fresh)); err != nil {
		t.Errorf("enrol with the new secret: %v", err)
	}
	kept, err := w.RotateSecret(t.Context(), origin, hub, true)
	if state := current(); err != nil || kept == fresh || state.Certificate != second {
		t.Errorf("rotate, and keep the certificate: got %+v, %v", state, err)
	}
	wantCut()

	for range 2 { // the second time nothing is stored
		_, err := w.BlockHub(t.Context(), origin, hub)
		if state := current(); err != nil || !state.Blocked || state.Certificate != second {
			t.Errorf("block: got %+v, %v", state, err)
		}
		wantCut("blocked " + string(hub))
	}
	wantCode(t, issue(third, domain.HashEnrolmentSecret(kept)), domain.CodeUnauthenticated)
	for range 2 {
		err := w.UnblockHub(t.Context(), origin, hub)
		if state := current(); err != nil || state.Blocked {
			t.Errorf("unblock: got %+v, %v", state, err)
		}
	}

	w.waited()
	for _, former := range []string{w.orgA, ""} {
		got, err := w.ReleaseHub(t.Context(), origin, hub)
		if state := current(); err != nil || got != former || state.OrgID != "" ||
			state.SiteID != "" || state.Labels != nil || state.Epoch.After != lastSequence ||
			state.OwnLog != "" {
			t.Errorf("release: got former organization %q, %+v, %v", got, state, err)
		}
		wantCut("disconnect " + string(hub))
	}
	if _, applied := w.waited(); len(applied) == 0 {
		t.Error("the release returned before it was in force everywhere")
	}
	state := current()
	if state.Released == nil || state.Released.OrgID != w.orgA ||
		state.Released.OwnLog != "second" ||
		state.Released.Epoch.After != 40 {
		t.Errorf("released %+v", state.Released)
	}
	_, err = w.UpdateHub(
		t.Context(), origin, domain.UpdateHub{OrgID: w.orgA, HubID: hub, SetName: true},
	)
	wantCode(t, err, domain.CodeNotFound)
	wantCode(
		t, w.BeginEpoch(t.Context(), origin, hub, domain.BeginEpoch{OwnLog: "third", After: 80}),
		domain.CodeNotFound,
	)

	again, err := w.AddHub(
		t.Context(), origin,
		domain.AddHub{OrgID: w.orgB, HubID: hub, SiteID: w.sitesB[0]},
	)
	if err != nil || again.OrgID != w.orgB || again.Epoch.After != lastSequence ||
		again.Epoch.ID == added.Epoch.ID ||
		again.OwnLog != "" {
		t.Errorf("add a released hub: got %+v, %v", again, err)
	}
	// A blocked hub cannot be added.
	const other = domain.HubID("hub-7k2m-q4xd-93tz")
	w.register(t, other)
	if _, err := w.BlockHub(t.Context(), origin, other); err != nil {
		t.Fatal(err)
	}
	_, err = w.AddHub(
		t.Context(), origin,
		domain.AddHub{OrgID: w.orgB, HubID: other, SiteID: w.sitesB[0]},
	)
	wantCode(t, err, domain.CodeHubNotAddable)

	var listed []domain.HubState
	if err := w.log.Inventory(t.Context(), func(h domain.HubState) error {
		listed = append(listed, h)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(listed) != 2 || listed[0].ID != hub || listed[0].OrgID != w.orgB ||
		listed[0].EnrolledAt.IsZero() ||
		listed[1].ID != other ||
		!listed[1].Blocked {
		t.Errorf("got inventory %+v", listed)
	}
}

// TestRotatedSecretIsReturnedWithAnError: the new secret is in force once it is stored. A caller
// that does not get it has a hub that cannot enrol.
func TestRotatedSecretIsReturnedWithAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	w.register(t, hub)
	issue := func(secret string) error {
		return w.IssueCertificate(t.Context(), origin, hub, domain.IssueCertificate{
			Fingerprint: strings.Repeat("a", 64), ExpiresAt: time.Now().Add(time.Hour),
			SecretHash: domain.HashEnrolmentSecret(secret),
		})
	}
	if err := issue("secret"); err != nil {
		t.Fatal(err)
	}
	cutFailed := errors.New("no answer")
	w.errReplicas, w.connections.Err = context.DeadlineExceeded, cutFailed
	secret, err := w.RotateSecret(t.Context(), origin, hub, false)
	if secret == "" || !errors.Is(err, directory.ErrNotInForce) || !errors.Is(err, cutFailed) {
		t.Errorf("got secret %q, %v, want a secret, ErrNotInForce and %v", secret, err, cutFailed)
	}
	if got := w.connections.Calls(); len(got) != 1 {
		t.Errorf("got connections cut %q, want one call", got)
	}
}

// TestGenerateHub checks that a generated hub can enrol, and that a prefix is validated.
func TestGenerateHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	id, secret, err := w.GenerateHub(t.Context(), origin, "hub")
	if _, ok := domain.ParseHubID(string(id)); err != nil || !ok ||
		!strings.HasPrefix(string(id), "hub-") {
		t.Fatalf("got %q, %v", id, err)
	}
	state, _, err := w.Hub(t.Context(), id)
	if err != nil || !bytes.Equal(state.SecretHash, domain.HashEnrolmentSecret(secret)) {
		t.Errorf("got %+v, %v, want the hash of the secret", state, err)
	}
	for _, prefix := range []string{"", "x", "Hub", "1hub", "hub.", strings.Repeat("a", 13)} {
		_, _, err := w.GenerateHub(t.Context(), origin, prefix)
		wantCode(t, err, domain.CodeInvalidRequest)
	}
}

// TestAddHubWithoutPresence checks that a hub is not added while nothing is known of its
// connection.
func TestAddHubWithoutPresence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	w.register(t, hub)
	add := domain.AddHub{OrgID: w.orgA, HubID: hub, SiteID: w.sitesA[0]}
	for name, c := range map[string]struct {
		presence directory.Presence
		code     domain.Code
	}{
		"never connected": {noPresence{}, domain.CodeHubNotAddable},
		"no answer":       {noPresence{context.DeadlineExceeded}, domain.CodeServiceUnavailable},
	} {
		s := directory.NewService(w.log, directory.ServiceConfig{Presence: c.presence})
		if _, err := s.AddHub(t.Context(), origin, add); domain.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
	}
}

// noPresence is a directory.Presence without hubs.
type noPresence struct{ err error }

func (p noPresence) Fetch(context.Context, domain.HubID) (domain.Presence, bool, error) {
	return domain.Presence{}, false, p.err
}
