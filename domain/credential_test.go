package domain_test

import (
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
)

// codeTest folds what is decided about the codes of a hub.
type codeTest struct {
	t     *testing.T
	state domain.HubState
}

func newCodeTest(t *testing.T) *codeTest {
	c := &codeTest{t: t}
	c.fold(
		domain.Record(origin, domain.HubRegistered{HubID: hub, SecretHash: make([]byte, 32)}),
		domain.Record(origin, domain.HubAdded{HubID: hub, OrgID: orgA, SiteID: site1}),
	)
	return c
}

func (c *codeTest) fold(events ...domain.Event) {
	c.t.Helper()
	for _, e := range events {
		var err error
		if c.state, err = domain.EvolveHub(c.state, e); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *codeTest) set(change domain.SetCredential) error {
	c.t.Helper()
	change.OrgID, change.HubID, change.DeviceID = orgA, hub, 3
	if change.Change == nil {
		change.Change = func(t domain.CredentialTerms) domain.CredentialTerms {
			t.Label = "Cleaner"
			return t
		}
	}
	events, err := domain.DecideSetCredential(c.state, origin, change)
	c.fold(events...)
	return err
}

func (c *codeTest) revoke(slot int64, version string) error {
	c.t.Helper()
	at := domain.CredentialSlot{DeviceID: 3, Slot: slot}
	events, err := domain.DecideRevokeCredential(c.state, origin, orgA, at, version)
	c.fold(events...)
	return err
}

func (c *codeTest) report(version, reason string) {
	c.t.Helper()
	c.fold(domain.DecideReportCredential(c.state, origin, version, reason, "")...)
}

// want compares the states of the codes, by slot.
func (c *codeTest) want(states ...domain.CredentialState) {
	c.t.Helper()
	var got []domain.CredentialState
	for _, known := range c.state.CredentialsOf(0) {
		got = append(got, known.State)
	}
	if !slices.Equal(got, states) {
		c.t.Errorf("got the states %v, want %v", got, states)
	}
}

func TestCredentialStates(t *testing.T) {
	t.Parallel()
	const pending, active = domain.CredentialPending, domain.CredentialActive
	const failed, revoked = domain.CredentialFailed, domain.CredentialRevoked
	c := newCodeTest(t)
	isNew := domain.SetCredential{New: true, Version: "v1", Taken: []int64{1}}
	for range 2 { // repeated, it does nothing
		if err := c.set(isNew); err != nil {
			t.Fatal(err)
		}
	}
	c.want(pending)
	if at := c.state.CredentialsOf(3)[0].Slot; at != 2 {
		t.Errorf("got slot %d, want the first that is free, 2", at)
	}
	for _, slot := range []int64{1, 2} {
		taken := domain.SetCredential{New: true, Slot: slot, Version: "v2", Taken: []int64{1}}
		wantCode(t, c.set(taken), domain.CodeInvalidRequest)
	}
	wantCode(t, c.set(domain.SetCredential{Slot: 9, Version: "v3"}), domain.CodeNotFound)
	c.report("v1", "")
	c.want(active)

	// The answer to an earlier change says nothing about a later one.
	if err := c.set(domain.SetCredential{Slot: 2, Version: "v4"}); err != nil {
		t.Fatal(err)
	}
	c.report("v1", "lock_full")
	c.want(pending)
	c.report("v4", "lock_full")
	c.want(failed)

	// A lock that has had a code must confirm its removal.
	if err := c.revoke(2, "v5"); err != nil {
		t.Fatal(err)
	}
	c.want(revoked)
	c.report("v5", "hub_error")
	c.want(revoked)
	wantCode(t, c.set(domain.SetCredential{Slot: 2, Version: "v6"}), domain.CodeNotFound)
	c.report("v5", "")
	c.want()
	wantCode(t, c.revoke(2, "v7"), domain.CodeNotFound)

	// A code that a lock has rejected is gone at once.
	if err := c.set(domain.SetCredential{New: true, Slot: 7, Version: "v8"}); err != nil {
		t.Fatal(err)
	}
	c.report("v8", "lock_full")
	if err := c.revoke(7, "v9"); err != nil {
		t.Fatal(err)
	}
	c.want()
}

// A device that is forgotten, a reset and a release end the codes.
func TestCredentialsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]domain.Fact{
		"released":         domain.HubReleased{HubID: hub, OrgID: orgA},
		"reset":            domain.HubLogBegun{HubID: hub, OrgID: orgA},
		"device forgotten": domain.DeviceForgotten{HubID: hub, OrgID: orgA, DeviceID: 3},
	} {
		c := newCodeTest(t)
		if err := c.set(domain.SetCredential{New: true, Version: "v1"}); err != nil {
			t.Fatal(err)
		}
		if got := domain.DecideForgetDevices(c.state, origin, []int64{3, 4}); len(got) != 1 {
			t.Errorf("forgotten devices: got %d facts, want one about the lock", len(got))
		}
		c.fold(domain.Record(origin, end))
		if c.want(); t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestCredentialTerms(t *testing.T) {
	t.Parallel()
	now, before := time.Now(), time.Now().Add(-time.Hour)
	ended := origin.At
	day := domain.WeeklyTime{Days: []string{"mon"}, From: "08:00", Until: "24:00"}
	for name, terms := range map[string]domain.CredentialTerms{
		"ends before it begins": {ValidFrom: &now, ValidUntil: &before},
		"has ended":             {ValidUntil: &ended},
		"schedule without zone": {Schedule: []domain.WeeklyTime{day}},
		"unknown day": {
			TimeZone: "UTC", Schedule: []domain.WeeklyTime{{Days: []string{"Monday"}, From: "08:00", Until: "09:00"}},
		},
		"until before from": {
			TimeZone: "UTC", Schedule: []domain.WeeklyTime{{Days: []string{"mon"}, From: "08:00", Until: "07:00"}},
		},
		"a time of one digit": {
			TimeZone: "UTC", Schedule: []domain.WeeklyTime{{Days: []string{"mon"}, From: "8:00", Until: "9:00"}},
		},
		"too many times": {TimeZone: "UTC", Schedule: slices.Repeat([]domain.WeeklyTime{day}, 22)},
	} {
		c := newCodeTest(t)
		err := c.set(domain.SetCredential{
			New: true, Version: "v1",
			Change: func(domain.CredentialTerms) domain.CredentialTerms { return terms },
		})
		if domain.CodeOf(err) != domain.CodeInvalidRequest {
			t.Errorf("%s: got %v, want invalid_request", name, err)
		}
	}
}

func wantCode(t *testing.T, err error, code domain.Code) {
	t.Helper()
	if err == nil || domain.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}
