package domain_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
)

var (
	registered = domain.HubRegistered{HubID: hub, SecretHash: hash(1)}
	added      = domain.HubAdded{
		HubID:     hub,
		OrgID:     orgA,
		SiteID:    site1,
		Name:      ptr("Hall"),
		EpochID:   domain.NewEpochID(0xa),
		Connected: true,
	}
	expires = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
)

func issued(n int) domain.HubCertificateIssued {
	return domain.HubCertificateIssued{HubID: hub, Fingerprint: fingerprint(n), ExpiresAt: expires}
}

func TestRegisterHub(t *testing.T) {
	t.Parallel()
	events, err := domain.DecideRegisterHub(domain.HubState{}, origin, hub, hash(1))
	checkDecision(t, events, err, []domain.Fact{registered}, "")
	events, err = domain.DecideRegisterHub(
		fold(t, domain.EvolveHub, registered), origin, hub, hash(2),
	)
	checkDecision(t, events, err, nil, domain.CodeInvalidRequest)
	_, err = domain.DecideRegisterHub(domain.HubState{}, origin, hub, []byte("secret"))
	if err == nil {
		t.Error("DecideRegisterHub with a hash of six bytes: got no error")
	}
}

func TestAddHub(t *testing.T) {
	t.Parallel()
	inventory := fold(t, domain.EvolveHub, registered)
	owned := fold(t, domain.EvolveHub, registered, added)
	unnamed := added
	unnamed.Name, unnamed.Connected = nil, false
	online, offline := &domain.Presence{HubID: hub, Online: true}, &domain.Presence{HubID: hub}
	for name, c := range map[string]struct {
		state    domain.HubState
		cmd      domain.AddHub
		presence *domain.Presence
		facts    []domain.Fact
		code     domain.Code
	}{
		"a free hub": {
			inventory, domain.AddHub{OrgID: orgA, HubID: hub, SiteID: site1, Name: ptr("Hall")},
			online, []domain.Fact{added}, "",
		},
		"without a name, offline": {
			inventory, domain.AddHub{OrgID: orgA, HubID: hub, SiteID: site1},
			offline, []domain.Fact{unnamed}, "",
		},
		"not in the inventory": {
			domain.HubState{}, domain.AddHub{OrgID: orgA, HubID: hub, SiteID: site1},
			offline, nil, domain.CodeHubNotAddable,
		},
		"never online": {
			inventory, domain.AddHub{OrgID: orgA, HubID: hub, SiteID: site1}, nil, nil,
			domain.CodeHubNotAddable,
		},
		"another's": {
			owned, domain.AddHub{OrgID: orgB, HubID: hub, SiteID: site2}, offline, nil,
			domain.CodeHubNotAddable,
		},
		"no organization": {inventory, domain.AddHub{HubID: hub}, offline, nil, ""},
		"again, elsewhere": {
			owned, domain.AddHub{OrgID: orgA, HubID: hub, SiteID: site2}, offline,
			[]domain.Fact{domain.HubMoved{HubID: hub, OrgID: orgA, SiteID: site2}}, "",
		},
		"again, renamed": {
			owned, domain.AddHub{OrgID: orgA, HubID: hub, SiteID: site2, Name: ptr("Attic")},
			nil, []domain.Fact{
				domain.HubMoved{HubID: hub, OrgID: orgA, SiteID: site2},
				domain.HubRenamed{HubID: hub, OrgID: orgA, Name: ptr("Attic")},
			}, "",
		},
		"again, without a change": {
			owned, domain.AddHub{OrgID: orgA, HubID: hub, SiteID: site1, Name: ptr("Hall")}, nil,
			nil, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, err := domain.DecideAddHub(
				c.state, origin, c.cmd, c.presence, domain.NewEpochID(0xa),
			)
			if c.cmd.OrgID == "" {
				if err == nil {
					t.Fatal("DecideAddHub without an organization: got no error")
				}
				return
			}
			checkDecision(t, events, err, c.facts, c.code)
			// The error must not reveal whether the serial exists or whose hub it is.
			if want := error(domain.ErrHubNotAddable()); c.code == domain.CodeHubNotAddable &&
				!reflect.DeepEqual(err, want) {
				t.Errorf("got error %#v, want %#v in all cases", err, want)
			}
		})
	}
}

func TestUpdateHub(t *testing.T) {
	t.Parallel()
	owned := fold(t, domain.EvolveHub, registered, added)
	for name, c := range map[string]struct {
		state domain.HubState
		cmd   domain.UpdateHub
		facts []domain.Fact
		code  domain.Code
	}{
		"clear the name": {
			owned, domain.UpdateHub{OrgID: orgA, SetName: true},
			[]domain.Fact{domain.HubRenamed{HubID: hub, OrgID: orgA}}, "",
		},
		"move": {
			owned, domain.UpdateHub{OrgID: orgA, SiteID: ptr(site2)},
			[]domain.Fact{domain.HubMoved{HubID: hub, OrgID: orgA, SiteID: site2}}, "",
		},
		"nothing new": {
			owned,
			domain.UpdateHub{OrgID: orgA, SetName: true, Name: ptr("Hall"), SiteID: ptr(site1)},
			nil, "",
		},
		"a name not set": {owned, domain.UpdateHub{OrgID: orgA, Name: ptr("Attic")}, nil, ""},
		"another's": {
			owned, domain.UpdateHub{OrgID: orgB, SetName: true}, nil, domain.CodeNotFound,
		},
		"a hub without organization": {
			fold(t, domain.EvolveHub, registered), domain.UpdateHub{OrgID: orgA, SetName: true},
			nil, domain.CodeNotFound,
		},
		"no organization": {
			fold(t, domain.EvolveHub, registered), domain.UpdateHub{SetName: true}, nil,
			domain.CodeNotFound,
		},
		"unknown": {
			domain.HubState{}, domain.UpdateHub{OrgID: orgA, SetName: true}, nil,
			domain.CodeNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, err := domain.DecideUpdateHub(c.state, origin, c.cmd)
			checkDecision(t, events, err, c.facts, c.code)
		})
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	issue := func(state domain.HubState, fingerprint string) ([]domain.Event, error) {
		return domain.DecideIssueCertificate(state, origin, domain.IssueCertificate{
			Fingerprint: fingerprint, ExpiresAt: expires, SecretHash: hash(1),
		}, domain.HubLimit{})
	}
	events, err := issue(domain.HubState{}, fingerprint(1))
	checkDecision(t, events, err, nil, domain.CodeUnauthenticated)
	events, err = issue(fold(t, domain.EvolveHub, registered), fingerprint(1))
	checkDecision(t, events, err, []domain.Fact{issued(1)}, "")
	events, err = issue(fold(t, domain.EvolveHub, registered, issued(1)), fingerprint(1))
	checkDecision(t, events, err, nil, "")

	state := fold(t, domain.EvolveHub, registered, added, issued(1), issued(2))
	if state.Certificate != fingerprint(2) || !state.CertificateExpires.Equal(expires) {
		t.Errorf(
			"got certificate %q until %s, want %q until %s",
			state.Certificate, state.CertificateExpires, fingerprint(2), expires,
		)
	}
	events, err = domain.DecideRevokeCertificate(state, origin, orgB)
	checkDecision(t, events, err, nil, domain.CodeNotFound)
	events, err = domain.DecideRevokeCertificate(state, origin, orgA)
	revoked := domain.HubCertificateRevoked{HubID: hub, OrgID: orgA, Fingerprint: fingerprint(2)}
	checkDecision(t, events, err, []domain.Fact{revoked}, "")

	// The hub may still be connected with the superseded certificate, so that one is revoked too.
	state = fold(t, domain.EvolveHub, registered, added, issued(1), issued(2), revoked)
	if state.Certificate != "" || !state.CertificateExpires.IsZero() {
		t.Errorf("got certificate %q after the revocation, want none", state.Certificate)
	}
	if want := []string{fingerprint(1), fingerprint(2)}; !slices.Equal(
		state.RevokedCertificates, want,
	) {
		t.Errorf("got revoked %q, want %q", state.RevokedCertificates, want)
	}
	events, err = domain.DecideRevokeCertificate(state, origin, orgA)
	checkDecision(t, events, err, nil, "")

	for _, unfit := range []string{"", "abc", fingerprint(1), fingerprint(2)} {
		if _, err := issue(state, unfit); err == nil {
			t.Errorf("DecideIssueCertificate(%q): got no error", unfit)
		}
	}
	state = fold(t, domain.EvolveHub, registered, added, issued(1), issued(2), revoked, issued(3))
	if state.Certificate != fingerprint(3) || len(state.RevokedCertificates) != 2 {
		t.Errorf(
			"after the new enrolment: got certificate %q and %d revoked, want %q and 2",
			state.Certificate, len(state.RevokedCertificates), fingerprint(3),
		)
	}
}

func TestBeginEpoch(t *testing.T) {
	t.Parallel()
	owned := fold(t, domain.EvolveHub, registered, added)
	begun := domain.HubLogBegun{
		HubID: hub, OrgID: orgA, EpochID: domain.NewEpochID(0xb), OwnLog: "second", Through: 16,
		After: 4711,
	}

	command := domain.BeginEpoch{OwnLog: "second", Through: 16, After: 4711}
	begin := func(s domain.HubState, c domain.BeginEpoch, epoch domain.EpochID) ([]domain.Event, error) {
		return domain.DecideBeginEpoch(s, origin, c, epoch, domain.HubLimit{})
	}
	events, err := begin(owned, command, domain.NewEpochID(0xb))
	checkDecision(t, events, err, []domain.Fact{begun}, "")
	events, err = begin(fold(t, domain.EvolveHub, registered), command, domain.NewEpochID(0xb))
	checkDecision(t, events, err, nil, domain.CodeNotFound)

	state := fold(t, domain.EvolveHub, registered, added, begun)
	want := domain.Epoch{ID: domain.NewEpochID(0xb), After: 4711}
	if !reflect.DeepEqual(state.Epoch, want) || state.OwnLog != "second" || state.OwnLogThrough != 16 {
		t.Errorf("folded to %+v, own log %q through %d; want %+v, second, 16", state.Epoch, state.OwnLog,
			state.OwnLogThrough, want)
	}
	events, err = begin(state, domain.BeginEpoch{OwnLog: "second", After: 4712}, domain.NewEpochID(0xc))
	checkDecision(t, events, err, nil, "")

	for name, c := range map[string]struct {
		command domain.BeginEpoch
		epoch   domain.EpochID
	}{
		"no log": {domain.BeginEpoch{After: 4712}, domain.NewEpochID(0xc)},
		"the same epoch": {
			domain.BeginEpoch{OwnLog: "third", After: 4712}, domain.NewEpochID(0xb),
		},
		"no epoch": {domain.BeginEpoch{OwnLog: "third", After: 4712}, domain.EpochID{}},
		"before the current log": {
			domain.BeginEpoch{OwnLog: "third", After: 4710}, domain.NewEpochID(0xc),
		},
	} {
		events, err := begin(state, c.command, c.epoch)
		if err == nil {
			t.Errorf("%s: got events %v, want an error", name, events)
		}
	}
}

// After any sequence of commands a hub has at most one owner, keeps the owner until it is released,
// has no current certificate that was superseded or revoked, and remembers a bounded number of
// certificates. States that were returned do not change.
func TestHubRulesHoldOverEveryHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var (
			state, before, copied domain.HubState
			owner                 string
			epochs                = map[domain.EpochID]bool{}
		)
		orgs, sites := []string{orgA, orgB}, []string{site1, site2}
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		for step := range steps {
			org := rapid.SampledFrom(orgs).Draw(t, "org")
			site := rapid.SampledFrom(sites).Draw(t, "site")
			epoch := domain.NewEpochID(uint32(step + 1))
			var events []domain.Event
			var err error
			switch rapid.IntRange(0, 11).Draw(t, "command") {
			case 6:
				events, err = domain.DecideRotateSecret(
					state, origin, hash(byte(step)), rapid.Bool().Draw(t, "keep"),
				)
			case 7:
				events, err = domain.DecideBlockHub(state, origin)
			case 8:
				events, err = domain.DecideUnblockHub(state, origin)
			case 9:
				events, err = domain.DecideReleaseHub(state, origin, uint64(step))
			case 10:
				events, err = domain.DecideLabelDevice(state, origin, domain.LabelDevice{
					OrgID: org, HubID: hub, DeviceID: int64(step % 3), SetName: true, Name: ptr(epoch.String()),
				})
			case 11:
				events = domain.DecideForgetDevices(state, origin, []int64{int64(step % 3), 2})
			case 0:
				events, err = domain.DecideRegisterHub(state, origin, hub, hash(byte(step)))
			case 1:
				var presence *domain.Presence
				if rapid.Bool().Draw(t, "connected before") {
					presence = &domain.Presence{HubID: hub}
				}
				events, err = domain.DecideAddHub(
					state, origin, domain.AddHub{OrgID: org, HubID: hub, SiteID: site}, presence,
					epoch,
				)
			case 2:
				events, err = domain.DecideUpdateHub(
					state,
					origin,
					domain.UpdateHub{
						OrgID:   org,
						SetName: true,
						Name:    ptr(epoch.String()),
						SiteID:  &site,
					},
				)
			case 3:
				events, err = domain.DecideIssueCertificate(state, origin, domain.IssueCertificate{
					Fingerprint: fmt.Sprintf(
						"%064x", rapid.IntRange(0, 30).Draw(t, "certificate"),
					), ExpiresAt: expires, SecretHash: state.SecretHash,
				}, domain.HubLimit{})
			case 4:
				events, err = domain.DecideRevokeCertificate(state, origin, org)
			case 5:
				events, err = domain.DecideBeginEpoch(state, origin, domain.BeginEpoch{
					OwnLog: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "log"),
					After:  uint64(step),
				}, epoch, domain.HubLimit{})
			}
			if err != nil {
				continue
			}
			before, copied = state, clone(state)
			for _, e := range events {
				if state, err = domain.EvolveHub(state, e); err != nil {
					t.Fatal(err)
				}
				fact, err := e.Fact()
				if err != nil {
					t.Fatal(err)
				}
				switch f := fact.(type) {
				case domain.HubAdded:
					if owner != "" {
						t.Fatalf("added to %s although %s has the hub", f.OrgID, owner)
					}
					owner = f.OrgID
				case domain.HubReleased:
					if owner != f.OrgID {
						t.Fatalf("released by %s although %q has the hub", f.OrgID, owner)
					}
					owner = ""
				case domain.HubCertificateIssued:
					if before.Blocked {
						t.Fatal("a blocked hub was issued a certificate")
					}
				case domain.HubRegistered:
					if before.Registered {
						t.Fatal("a registered hub was registered again")
					}
				}
			}
			if !reflect.DeepEqual(before, copied) {
				t.Fatalf("a returned state has changed: got %#v, want %#v", before, copied)
			}
			if state.OrgID != owner || owner != "" && (state.SiteID == "" || !state.Registered) {
				t.Fatalf("got state %#v, want owner %q", state, owner)
			}
			if before.Epoch.ID != state.Epoch.ID && state.OrgID != "" {
				if epochs[state.Epoch.ID] {
					t.Fatalf("epoch %s was used twice", state.Epoch.ID)
				}
				epochs[state.Epoch.ID] = true
			}
			if state.Epoch.After < before.Epoch.After {
				t.Fatalf(
					"Epoch.After went from %d back to %d", before.Epoch.After, state.Epoch.After,
				)
			}
			if slices.Contains(state.RevokedCertificates, state.Certificate) ||
				slices.Contains(state.SupersededCertificates, state.Certificate) {
				t.Fatalf("a former certificate is current: %#v", state)
			}
			if max(
				len(state.RevokedCertificates), len(state.SupersededCertificates),
			) > domain.MaxFormerCertificates {
				t.Fatalf(
					"got %d revoked and %d superseded certificates, want at most %d",
					len(state.RevokedCertificates), len(state.SupersededCertificates),
					domain.MaxFormerCertificates,
				)
			}
		}
	})
}

func clone(s domain.HubState) domain.HubState {
	s.SecretHash, s.Labels = slices.Clone(s.SecretHash), maps.Clone(s.Labels)
	s.SupersededCertificates = slices.Clone(s.SupersededCertificates)
	s.RevokedCertificates = slices.Clone(s.RevokedCertificates)
	if s.Name != nil {
		s.Name = ptr(*s.Name)
	}
	return s
}
