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

// What the tests of this package share.
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

// decided compares what a decision gave with the facts or the code that were expected.
func decided(
	t *testing.T, events []domain.Event, err error, facts []domain.Fact, code domain.Code,
) {
	t.Helper()
	if code != "" {
		if !errors.Is(err, &domain.Error{Code: code}) {
			t.Fatalf("refused with %v, want %s", err, code)
		}
		if len(events) > 0 {
			t.Fatalf("refused, and decided %v", events)
		}
		return
	}
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	var got []domain.Fact
	for _, e := range events {
		fact, err := e.Fact()
		if err != nil {
			t.Fatal(err)
		}
		if !e.At.Equal(origin.At) || e.Actor != origin.Actor || e.RequestID != origin.RequestID ||
			e.ID != "" {
			t.Errorf("the event is not of its origin: %#v", e)
		}
		got = append(got, fact)
	}
	if !reflect.DeepEqual(got, facts) {
		t.Errorf("decided %#v, want %#v", got, facts)
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
	decided(t, events, err, []domain.Fact{created, owner}, "")

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
	if _, err := domain.DecideCreateOrg(state, origin, orgA, "Acme", "m", "a@example.org"); err == nil {
		t.Error("an organization was created twice")
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
	decided(t, events, err, []domain.Fact{created}, "")
	if _, err := domain.DecideCreateSite(state, origin, orgA, site1, "Harbour"); err == nil {
		t.Error("a site was created twice")
	}

	renamed := domain.SiteRenamed{OrgID: orgA, SiteID: site1, Name: "Quay"}
	events, err = domain.DecideRenameSite(state, origin, "Quay")
	decided(t, events, err, []domain.Fact{renamed}, "")
	events, err = domain.DecideRenameSite(state, origin, "Harbour")
	decided(t, events, err, nil, "")
	events, err = domain.DecideRenameSite(domain.SiteState{}, origin, "Quay")
	decided(t, events, err, nil, domain.CodeNotFound)

	if got := fold(t, domain.EvolveSite, created, renamed); got.Name != "Quay" ||
		got.CreatedAt != origin.At {
		t.Errorf("folded to %#v", got)
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
	events, err := domain.DecideCreateKey(domain.KeyState{}, origin, orgA, "l", scopes, key)
	decided(t, events, err, []domain.Fact{created}, "")

	state := fold(t, domain.EvolveKey, created)
	if !state.Exists() || state.Revoked() || !key.Matches(state.SecretHash) || state.OrgID != orgA {
		t.Errorf("folded to %#v", state)
	}
	if _, err := domain.DecideCreateKey(state, origin, orgB, "l", scopes, key); err == nil {
		t.Error("a key was created twice")
	}

	revoked := domain.KeyRevoked{KeyID: key.ID, OrgID: orgA}
	for name, c := range map[string]struct {
		state domain.KeyState
		org   string
		facts []domain.Fact
		code  domain.Code
	}{
		"by its organization":   {state, orgA, []domain.Fact{revoked}, ""},
		"by the operator":       {state, "", []domain.Fact{revoked}, ""},
		"by another":            {state, orgB, nil, domain.CodeNotFound},
		"one that is not there": {domain.KeyState{}, "", nil, domain.CodeNotFound},
		"again":                 {fold(t, domain.EvolveKey, created, revoked), orgA, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, err := domain.DecideRevokeKey(c.state, origin, c.org)
			decided(t, events, err, c.facts, c.code)
		})
	}
	if _, err := domain.EvolveKey(domain.KeyState{}, domain.Record(origin, domain.KeyCreated{
		SecretHash: []byte{1},
	})); err == nil {
		t.Error("a hash of one byte was taken for a secret's")
	}
}

func TestCleanScopes(t *testing.T) {
	t.Parallel()
	got, err := domain.CleanScopes(
		[]domain.Scope{domain.ScopeEventsRead, domain.ScopeSitesRead, domain.ScopeEventsRead},
	)
	if err != nil ||
		!reflect.DeepEqual(got, []domain.Scope{domain.ScopeSitesRead, domain.ScopeEventsRead}) {
		t.Errorf("cleaned to %v, %v", got, err)
	}
	for _, scopes := range [][]domain.Scope{nil, {"sites:paint"}, {domain.ScopeSitesRead, ""}} {
		if _, err := domain.CleanScopes(scopes); domain.CodeOf(err) != domain.CodeInvalidRequest ||
			!strings.Contains(err.Error(), "hubs:command") {
			t.Errorf("%q: %v", scopes, err)
		}
	}
}

// An event that stands under another aggregate's subject must stop whoever folds it.
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
			t.Error("an event of another aggregate was folded")
		}
	}
	if !errors.Is(unknownErr, domain.ErrUnknownEvent) {
		t.Errorf("an unknown event gives %v", unknownErr)
	}
}
