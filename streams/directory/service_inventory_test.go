package directory_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// A stolen enrolment secret could not be ended, and a hub that somebody had claimed wrongly stayed
// with them for good.
func TestWhatOperatorsDoWithTheInventory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	const stranger = domain.HubID("hub-none-none-none")
	for name, act := range map[string]func(domain.HubID) error{
		"rotate": func(id domain.HubID) error {
			_, err := w.RotateSecret(t.Context(), origin, id, bytes.Repeat([]byte{7}, 32), false)
			return err
		},
		"block":   func(id domain.HubID) error { _, err := w.BlockHub(t.Context(), origin, id); return err },
		"unblock": func(id domain.HubID) error { _, err := w.UnblockHub(t.Context(), origin, id); return err },
		"release": func(id domain.HubID) error { _, err := w.ReleaseHub(t.Context(), origin, id, 9); return err },
	} {
		if err := act(stranger); domain.CodeOf(err) != domain.CodeNotFound {
			t.Errorf("%s of a hub that is not in the inventory: %v", name, err)
		}
	}

	w.register(t, hub)
	first, second, third := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
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
		directory.AddHub{OrgID: w.orgA, HubID: hub, SiteID: w.sitesA[0], Ever: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.BeginLog(t.Context(), origin, hub, domain.BeginLog{
		OwnLog: "second", Through: 3, After: 40,
	}); err != nil {
		t.Fatal(err)
	}

	// Rotated: the former secret is none, also for an enrolment that compared it a moment ago, and
	// its certificate has ended.
	fresh := bytes.Repeat([]byte{7}, 32)
	state, err := w.RotateSecret(t.Context(), origin, hub, fresh, false)
	if err != nil || state.Certificate != "" ||
		!slices.Equal(state.RevokedCertificates, []string{first}) ||
		state.OrgID != w.orgA {
		t.Errorf("%+v, %v", state, err)
	}
	refused(t, issue(second, secretHash()), domain.CodeUnauthenticated)
	if err := issue(second, fresh); err != nil {
		t.Errorf("the new secret: %v", err)
	}
	// Rotated with its certificate kept.
	if state, err = w.RotateSecret(t.Context(), origin, hub, secretHash(), true); err != nil ||
		state.Certificate != second {
		t.Errorf("%+v, %v", state, err)
	}

	for range 2 { // the second time nothing happens
		if state, err = w.BlockHub(t.Context(), origin, hub); err != nil || !state.Blocked ||
			state.Certificate != second {
			t.Errorf("%+v, %v", state, err)
		}
	}
	refused(t, issue(third, secretHash()), domain.CodeUnauthenticated)
	for range 2 {
		if state, err = w.UnblockHub(t.Context(), origin, hub); err != nil || state.Blocked {
			t.Errorf("%+v, %v", state, err)
		}
	}

	_, applied := w.waited()
	for range 2 {
		state, err = w.ReleaseHub(t.Context(), origin, hub, 77)
		if err != nil || state.OrgID != "" || state.SiteID != "" || state.Labels != nil ||
			state.Epoch.After != 77 ||
			state.OwnLog != "" {
			t.Errorf("%+v, %v", state, err)
		}
	}
	if _, after := w.waited(); len(after) == 0 {
		t.Errorf("the release returned before it was in force everywhere: %v", applied)
	}
	if state.Released == nil || state.Released.OrgID != w.orgA ||
		state.Released.OwnLog != "second" ||
		state.Released.Epoch.After != 40 {
		t.Errorf("released %+v", state.Released)
	}
	_, err = w.UpdateHub(
		t.Context(), origin, directory.UpdateHub{OrgID: w.orgA, HubID: hub, SetName: true},
	)
	refused(t, err, domain.CodeNotFound)
	refused(
		t, w.BeginLog(t.Context(), origin, hub, domain.BeginLog{OwnLog: "third", After: 80}),
		domain.CodeNotFound,
	)

	again, err := w.AddHub(
		t.Context(), origin,
		directory.AddHub{OrgID: w.orgB, HubID: hub, SiteID: w.sitesB[0], Ever: true},
	)
	if err != nil || again.OrgID != w.orgB || again.Epoch.After != 77 ||
		again.Epoch.ID == added.Epoch.ID ||
		again.OwnLog != "" {
		t.Errorf("%+v, %v", again, err)
	}
	// A blocked hub cannot be added.
	const other = domain.HubID("hub-7k2m-q4xd-93tz")
	w.register(t, other)
	if _, err := w.BlockHub(t.Context(), origin, other); err != nil {
		t.Fatal(err)
	}
	_, err = w.AddHub(
		t.Context(), origin,
		directory.AddHub{OrgID: w.orgB, HubID: other, SiteID: w.sitesB[0], Ever: true},
	)
	refused(t, err, domain.CodeHubNotAddable)

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
		t.Errorf("the inventory is %+v", listed)
	}
}
