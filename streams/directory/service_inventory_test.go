package directory_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

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
	streamstest.Must(t, issue("secret"))
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

// TestRemoveHub: the organization's hub can be added by another organization afterwards, and
// another organization's hub is not found.
func TestRemoveHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	w.register(t, hub)
	w.add(t)
	for _, org := range []string{w.orgB, "", "*"} {
		wantCode(t, w.RemoveHub(t.Context(), origin, org, hub), domain.CodeNotFound)
	}
	w.connections.Calls()
	streamstest.Must(t, w.RemoveHub(t.Context(), origin, w.orgA, hub))
	if calls := w.connections.Calls(); len(calls) != 1 || calls[0] != "disconnect "+string(hub) {
		t.Errorf("got calls %q, want one disconnect", calls)
	}
	wantCode(t, w.RemoveHub(t.Context(), origin, w.orgA, hub), domain.CodeNotFound)
	add := domain.AddHub{OrgID: w.orgB, HubID: hub, SiteID: w.sitesB[0]}
	if state, err := w.AddHub(t.Context(), origin, add); err != nil || state.OrgID != w.orgB {
		t.Errorf("add to another organization: got %+v, %v", state, err)
	}
	wantCode(t, w.RemoveHub(t.Context(), origin, w.orgA, hub), domain.CodeNotFound)
}

// TestSeeConditionOfOwnHubs: nothing is recorded for another organization's hub.
func TestSeeConditionOfOwnHubs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	w.register(t, hub)
	w.add(t)
	smoke := []domain.Occurrence{{HubID: hub, Condition: "smoke/1/0", Since: origin.At}}
	wantCode(t, w.SeeConditions(t.Context(), origin, w.orgB, smoke, false), domain.CodeNotFound)
	streamstest.Must(t, w.SeeConditions(t.Context(), origin, w.orgA, smoke, false))
	org := w.org(t, w.orgA)
	if _, ok := org.SeenCondition(hub, "smoke/1/0", origin.At); !ok {
		t.Errorf("got %+v, want the condition seen", org.Seen)
	}
}
