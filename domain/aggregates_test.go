package domain_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

// Ids that the tests of this package share.
const (
	orgA  = "01935f2e-0000-7000-8000-00000000000a"
	orgB  = "01935f2e-0000-7000-8000-00000000000b"
	ann   = "01935f2e-0000-7000-8000-0000000000ab"
	site1 = "01935f2e-0000-7000-8000-000000000001"
	site2 = "01935f2e-0000-7000-8000-000000000002"
	hub   = domain.HubID("hub-7k2m-q4xd-93ta")
)

var origin = domain.Origin{
	At:        time.Date(2026, 11, 21, 4, 5, 6, 123456000, time.UTC),
	Actor:     domain.Actor{Kind: domain.ActorKey, ID: "0123456789AB"},
	RequestID: "01JD5Q3W8ZV6K2M4N7P9R1S3T6",
	Address:   "203.0.113.7",
}

func hash(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }

func fingerprint(n int) string { return strings.Repeat("0123456789abcdef"[n:n+1], 64) }

func ptr[T any](v T) *T { return &v }

// fold folds facts into a state.
func fold[S any](t testing.TB, evolve func(S, domain.Event) (S, error), facts ...domain.Fact) S {
	t.Helper()
	var state S
	for _, fact := range facts {
		var err error
		if state, err = evolve(state, domain.Record(origin, fact)); err != nil {
			t.Fatalf("fold %#v: %v", fact, err)
		}
	}
	return state
}

// checkDecision fails unless a decision returned the facts, or an error of the code. It expects
// events of the actor of origin.
func checkDecision(
	t *testing.T, events []domain.Event, err error, facts []domain.Fact, code domain.Code,
) {
	t.Helper()
	if code != "" {
		if !errors.Is(err, &domain.Error{Code: code}) {
			t.Fatalf("got error %v, want %s", err, code)
		}
		if len(events) > 0 {
			t.Fatalf("got events %v with error %v, want none", events, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
	var got []domain.Fact
	for _, e := range events {
		fact, err := e.Fact()
		if err != nil {
			t.Fatal(err)
		}
		if !e.At.Equal(origin.At) || e.Actor != origin.Actor || e.RequestID != origin.RequestID ||
			e.Address != origin.Address || e.ID != "" {
			t.Errorf("got event %#v, want one of origin %+v without an id", e, origin)
		}
		got = append(got, fact)
	}
	if !reflect.DeepEqual(got, facts) {
		t.Errorf("got facts %#v, want %#v", got, facts)
	}
}

func TestOrg(t *testing.T) {
	t.Parallel()
	created := domain.OrgCreated{OrgID: orgA, Name: "Acme"}
	owner := domain.MemberAdded{
		OrgID:    orgA,
		MemberID: "m",
		Email:    "a@example.org",
		Role:     domain.RoleOwner,
	}

	events, err := domain.DecideCreateOrg(
		domain.OrgState{}, origin, orgA, "Acme", "m", "a@example.org",
	)
	checkDecision(t, events, err, []domain.Fact{created, owner}, "")

	state := fold(t, domain.EvolveOrg, created, owner)
	want := domain.OrgState{
		ID: orgA, Name: "Acme", CreatedAt: origin.At,
		Members: []domain.OrgMember{
			{
				ID:       "m",
				Email:    "a@example.org",
				Address:  "a@example.org",
				Role:     domain.RoleOwner,
				JoinedAt: origin.At,
			},
		},
	}
	if !reflect.DeepEqual(state, want) {
		t.Errorf("folded to %#v, want %#v", state, want)
	}
	_, err = domain.DecideCreateOrg(state, origin, orgA, "Acme", "m", "a@example.org")
	if err == nil {
		t.Error("DecideCreateOrg for an existing organization: got no error")
	}
}

func TestSite(t *testing.T) {
	t.Parallel()
	created := domain.SiteCreated{OrgID: orgA, SiteID: site1, Name: "Harbour"}
	state := fold(t, domain.EvolveSite, created)
	if want := (domain.SiteState{
		OrgID: orgA, ID: site1, Name: "Harbour", CreatedAt: origin.At,
	}); state != want {
		t.Errorf("folded to %#v, want %#v", state, want)
	}

	events, err := domain.DecideCreateSite(domain.SiteState{}, origin, orgA, site1, "Harbour")
	checkDecision(t, events, err, []domain.Fact{created}, "")
	if _, err := domain.DecideCreateSite(state, origin, orgA, site1, "Harbour"); err == nil {
		t.Error("DecideCreateSite for an existing site: got no error")
	}

	renamed := domain.SiteRenamed{OrgID: orgA, SiteID: site1, Name: "Quay"}
	events, err = domain.DecideRenameSite(state, origin, "Quay")
	checkDecision(t, events, err, []domain.Fact{renamed}, "")
	events, err = domain.DecideRenameSite(state, origin, "Harbour")
	checkDecision(t, events, err, nil, "")
	events, err = domain.DecideRenameSite(domain.SiteState{}, origin, "Quay")
	checkDecision(t, events, err, nil, domain.CodeNotFound)

	if got := fold(t, domain.EvolveSite, created, renamed); got.Name != "Quay" || got.CreatedAt != origin.At {
		t.Errorf("folded to %#v, want the name Quay and the time of creation", got)
	}
}

func TestKeyAggregate(t *testing.T) {
	t.Parallel()
	key := domain.NewKey(domain.EnvironmentDev, [domain.KeyEntropy]byte{1, 2, 3})
	scopes := []domain.Scope{domain.ScopeSitesRead}
	secret := key.SecretHash()
	created := domain.KeyCreated{
		KeyID: key.ID, OrgID: orgA, Label: "l", Environment: domain.EnvironmentDev, Scopes: scopes,
		SecretHash: secret[:],
	}
	events, err := domain.DecideCreateKey(domain.KeyState{}, origin, orgA, "l", scopes, domain.KeyLimits{}, key)
	checkDecision(t, events, err, []domain.Fact{created}, "")

	state := fold(t, domain.EvolveKey, created)
	if !state.Exists() || state.Revoked() || key.SecretHash() != state.SecretHash || state.OrgID != orgA {
		t.Errorf("folded to %#v, want a valid key of %s", state, orgA)
	}
	if _, err := domain.DecideCreateKey(state, origin, orgB, "l", scopes, domain.KeyLimits{}, key); err == nil {
		t.Error("DecideCreateKey for an existing key: got no error")
	}

	revoked := domain.KeyRevoked{KeyID: key.ID, OrgID: orgA}
	checkKeyChanges(t, state, fold(t, domain.EvolveKey, created, revoked))
	for name, c := range map[string]struct {
		state domain.KeyState
		org   string
		facts []domain.Fact
		code  domain.Code
	}{
		"by its organization": {state, orgA, []domain.Fact{revoked}, ""},
		"by the operator":     {state, "", []domain.Fact{revoked}, ""},
		"by another":          {state, orgB, nil, domain.CodeNotFound},
		"an unknown key":      {domain.KeyState{}, "", nil, domain.CodeNotFound},
		"again":               {fold(t, domain.EvolveKey, created, revoked), orgA, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, err := domain.DecideRevokeKey(c.state, origin, c.org)
			checkDecision(t, events, err, c.facts, c.code)
		})
	}
	if _, err := domain.EvolveKey(domain.KeyState{}, domain.Record(origin, domain.KeyCreated{
		SecretHash: []byte{1},
	})); err == nil {
		t.Error("EvolveKey with a hash of one byte: got no error")
	}
}

// checkKeyChanges tries the changes of a key, which are rejected for a revoked one.
func checkKeyChanges(t *testing.T, state, revoked domain.KeyState) {
	t.Helper()
	limits := domain.KeyLimits{Sites: []string{"b", "a", "b"}, ExpiresAt: origin.At.Add(time.Hour)}
	clean := domain.KeyLimits{Sites: []string{"a", "b"}, ExpiresAt: limits.ExpiresAt}
	changed := domain.KeyChanged{KeyID: state.ID, OrgID: orgA, KeyLimits: clean}
	expired, members := limits, state
	expired.ExpiresAt = origin.At
	members.Scopes = []domain.Scope{domain.ScopeMembersRead}
	for name, c := range map[string]struct {
		state  domain.KeyState
		org    string
		limits domain.KeyLimits
		facts  []domain.Fact
		code   domain.Code
	}{
		"limits":              {state, orgA, limits, []domain.Fact{changed}, ""},
		"the same":            {fold(t, keepKey(state), changed), orgA, limits, nil, ""},
		"none":                {state, orgA, domain.KeyLimits{}, nil, ""},
		"another's":           {state, orgB, limits, nil, domain.CodeNotFound},
		"a revoked key":       {revoked, orgA, limits, nil, domain.CodeNotFound},
		"a time that is over": {state, orgA, expired, nil, domain.CodeInvalidRequest},
		"members beside":      {members, orgA, limits, nil, domain.CodeInvalidRequest},
	} {
		t.Run("change: "+name, func(t *testing.T) {
			events, err := domain.DecideChangeKey(c.state, origin, c.org, c.limits)
			checkDecision(t, events, err, c.facts, c.code)
		})
	}

	next := domain.NewKey(domain.EnvironmentDev, [domain.KeyEntropy]byte{9}).WithID(state.ID)
	if parsed, err := domain.ParseKey(next.Reveal()); err != nil || parsed.ID != state.ID {
		t.Errorf("WithID: got %v, %v, want a valid key with the id", parsed, err)
	}
	hash, until := next.SecretHash(), func(d time.Duration) domain.KeySecret {
		return domain.KeySecret{Hash: state.SecretHash[:], Until: origin.At.Add(d)}
	}
	rotate := func(former ...domain.KeySecret) []domain.Fact {
		return []domain.Fact{domain.KeyRotated{
			KeyID: state.ID, OrgID: orgA, SecretHash: hash[:], Former: former,
		}}
	}
	before := domain.KeySecret{Hash: []byte("before"), Until: origin.At.Add(time.Minute)}
	again := state
	again.Former = []domain.KeySecret{before, {Hash: []byte("over"), Until: origin.At}}
	for name, c := range map[string]struct {
		state   domain.KeyState
		overlap time.Duration
		facts   []domain.Fact
		code    domain.Code
	}{
		"overlap":       {state, time.Hour, rotate(until(time.Hour)), ""},
		"at once":       {again, 0, rotate(), ""},
		"twice":         {again, time.Hour, rotate(until(time.Hour), before), ""},
		"too long":      {state, domain.MaxSecretOverlap + 1, nil, domain.CodeInvalidRequest},
		"a revoked key": {revoked, time.Hour, nil, domain.CodeNotFound},
	} {
		t.Run("rotate: "+name, func(t *testing.T) {
			events, err := domain.DecideRotateKey(c.state, origin, orgA, next, c.overlap)
			checkDecision(t, events, err, c.facts, c.code)
		})
	}
}

// keepKey returns domain.EvolveKey that begins with a state.
func keepKey(from domain.KeyState) func(domain.KeyState, domain.Event) (domain.KeyState, error) {
	return func(_ domain.KeyState, e domain.Event) (domain.KeyState, error) {
		return domain.EvolveKey(from, e)
	}
}

func TestCleanScopes(t *testing.T) {
	t.Parallel()
	got, err := domain.CleanScopes(
		[]domain.Scope{domain.ScopeEventsRead, domain.ScopeSitesRead, domain.ScopeEventsRead},
	)
	if err != nil || !reflect.DeepEqual(got, []domain.Scope{domain.ScopeSitesRead, domain.ScopeEventsRead}) {
		t.Errorf("CleanScopes: got %v, %v, want sites:read and events:read", got, err)
	}
	for _, scopes := range [][]domain.Scope{nil, {"sites:paint"}, {domain.ScopeSitesRead, ""}} {
		if _, err := domain.CleanScopes(scopes); domain.CodeOf(err) != domain.CodeInvalidRequest ||
			!strings.Contains(err.Error(), "hubs:command") {
			t.Errorf("CleanScopes(%q): got %v, want invalid_request with all scopes", scopes, err)
		}
	}
}

// An event under another aggregate's subject must fail the fold.
func TestEvolveRejectsEventsOfOthers(t *testing.T) {
	t.Parallel()
	moved := domain.Record(origin, domain.HubMoved{HubID: hub})
	renamed := domain.Record(origin, domain.SiteRenamed{SiteID: site1})
	unknown := domain.Event{ID: eventID, Type: "hub.painted", V: 1}
	_, orgErr := domain.EvolveOrg(domain.OrgState{}, moved)
	_, siteErr := domain.EvolveSite(domain.SiteState{}, moved)
	_, keyErr := domain.EvolveKey(domain.KeyState{}, moved)
	_, hubErr := domain.EvolveHub(domain.HubState{}, renamed)
	_, accountErr := domain.EvolveAccount(domain.AccountState{}, moved)
	_, unknownErr := domain.EvolveHub(domain.HubState{}, unknown)
	for _, err := range []error{orgErr, siteErr, keyErr, hubErr, accountErr, unknownErr} {
		if err == nil {
			t.Error("an event of another aggregate: got no error")
		}
	}
	if !errors.Is(unknownErr, domain.ErrUnknownEvent) {
		t.Errorf("an unknown event: got %v, want ErrUnknownEvent", unknownErr)
	}
}
