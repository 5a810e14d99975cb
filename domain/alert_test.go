package domain_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
)

// evolveOrg folds facts into an organization with one owner, ann, and returns it.
func evolveOrg(t *testing.T, facts ...domain.Fact) domain.OrgState {
	t.Helper()
	var state domain.OrgState
	var err error
	for _, fact := range append([]domain.Fact{
		domain.OrgCreated{OrgID: orgA, Name: "Acme"},
		domain.MemberAdded{OrgID: orgA, MemberID: ann, Email: "a@example.org", Role: domain.RoleOwner},
	}, facts...) {
		if state, err = domain.EvolveOrg(state, domain.Record(origin, fact)); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

// A seen condition counts for its occurrence only: smoke that comes back is new.
func TestSeenConditionEndsWithItsOccurrence(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 11, 28, 4, 5, 6, 0, time.UTC)
	again := first.Add(time.Hour)
	see := func(state domain.OrgState, since time.Time) domain.OrgState {
		t.Helper()
		events, err := domain.DecideSeeConditions(
			state, origin, []domain.Occurrence{{HubID: hub, Condition: "smoke/3/0", Since: since}},
		)
		if err != nil || len(events) != 1 {
			t.Fatalf("see: got %d events, %v, want 1", len(events), err)
		}
		state, err = domain.EvolveOrg(state, events[0])
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	state := see(evolveOrg(t), first)
	if seen, ok := state.SeenCondition(hub, "smoke/3/0", first); !ok ||
		seen.MemberID != origin.Actor.ID || !seen.At.Equal(origin.At) {
		t.Errorf("got %+v, %t, want the actor", seen, ok)
	}
	if _, ok := state.SeenCondition(hub, "smoke/3/0", again); ok {
		t.Error("a later occurrence counts as seen")
	}
	if events, err := domain.DecideSeeConditions(
		state, origin, []domain.Occurrence{{HubID: hub, Condition: "smoke/3/0", Since: first}},
	); err != nil || len(events) != 0 {
		t.Errorf("seen twice: got %d events, %v, want none", len(events), err)
	}
	state = see(state, again)
	if len(state.Seen) != 1 {
		t.Errorf("got %d seen conditions, want only the newest occurrence", len(state.Seen))
	}
}

// Several conditions are seen at once, as one event, those that somebody has seen left out.
func TestSeeManyConditions(t *testing.T) {
	t.Parallel()
	var all []domain.Occurrence
	for i := range 500 {
		all = append(all, domain.Occurrence{
			HubID: hub, Condition: fmt.Sprint("smoke/", i), Since: origin.At,
		})
	}
	state := evolveOrg(t, domain.ConditionSeen{OrgID: orgA, Occurrence: all[7]})
	events, err := domain.DecideSeeConditions(state, origin, all)
	if err != nil || len(events) != 1 {
		t.Fatalf("got %d events, %v, want 1", len(events), err)
	}
	if state, err = domain.EvolveOrg(state, events[0]); err != nil || len(state.Seen) != 500 {
		t.Errorf("got %d seen, %v, want 500", len(state.Seen), err)
	}
	events, err = domain.DecideUnseeConditions(state, origin, all[:499])
	if err != nil || len(events) != 1 {
		t.Fatalf("take it back: got %d events, %v, want 1", len(events), err)
	}
	if state, err = domain.EvolveOrg(state, events[0]); err != nil || len(state.Seen) != 1 {
		t.Errorf("take it back: got %d seen, %v, want 1", len(state.Seen), err)
	}
	if events, err = domain.DecideUnseeConditions(state, origin, all[:1]); err != nil || len(events) != 0 {
		t.Errorf("take back what nobody has seen: got %d events, %v, want none", len(events), err)
	}
	tooMany := make([]domain.Occurrence, domain.MaxSeenAtOnce+1)
	if _, err := domain.DecideSeeConditions(state, origin, tooMany); err == nil {
		t.Error("too many: got no error")
	}
}

// The state of an organization is bounded.
func TestSeenConditionsAreBounded(t *testing.T) {
	t.Parallel()
	state := evolveOrg(t)
	occurrence := func(i int) domain.Occurrence {
		return domain.Occurrence{HubID: hub, Condition: fmt.Sprint("smoke/", i), Since: origin.At}
	}
	for i := range domain.MaxSeenConditions {
		state.Seen = append(
			state.Seen, domain.SeenCondition{HubID: hub, Condition: occurrence(i).Condition},
		)
	}
	for i := range 5 {
		seen := domain.ConditionSeen{OrgID: orgA, Occurrence: occurrence(domain.MaxSeenConditions + i)}
		var err error
		if state, err = domain.EvolveOrg(state, domain.Record(origin, seen)); err != nil {
			t.Fatal(err)
		}
	}
	if len(state.Seen) != domain.MaxSeenConditions || state.Seen[0].Condition != "smoke/5" {
		t.Errorf("got %d from %s, want the newest", len(state.Seen), state.Seen[0].Condition)
	}
}

func TestDecideSeeConditionsRejects(t *testing.T) {
	t.Parallel()
	at := origin.At
	long := string(slices.Repeat([]byte("x"), 201))
	for name, c := range map[string]struct {
		state     domain.OrgState
		condition string
		since     time.Time
		want      domain.Code
	}{
		"no organization": {domain.OrgState{}, "smoke", at, domain.CodeNotFound},
		"no condition":    {evolveOrg(t), "", at, domain.CodeInvalidRequest},
		"a long id":       {evolveOrg(t), long, at, domain.CodeInvalidRequest},
		"no time":         {evolveOrg(t), "smoke", time.Time{}, domain.CodeInvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := domain.DecideSeeConditions(
				c.state, origin, []domain.Occurrence{{HubID: hub, Condition: c.condition, Since: c.since}},
			)
			if domain.CodeOf(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestRenameOrg(t *testing.T) {
	t.Parallel()
	state := evolveOrg(t)
	owner := domain.Origin{At: origin.At, Actor: domain.Actor{Kind: domain.ActorMember, ID: ann}}
	stranger := domain.Origin{At: origin.At, Actor: domain.Actor{Kind: domain.ActorMember, ID: "x"}}
	if events, err := domain.DecideRenameOrg(state, owner, "Acme"); err != nil || len(events) != 0 {
		t.Errorf("the same name: got %d events, %v, want none", len(events), err)
	}
	if _, err := domain.DecideRenameOrg(
		state, stranger, "Mine",
	); domain.CodeOf(err) != domain.CodeForbidden {
		t.Errorf("a stranger: got %v, want forbidden", err)
	}
	if _, err := domain.DecideRenameOrg(
		domain.OrgState{}, owner, "Mine",
	); domain.CodeOf(err) != domain.CodeNotFound {
		t.Errorf("no organization: got %v, want not_found", err)
	}
	events, err := domain.DecideRenameOrg(state, owner, "Houses")
	if err != nil || len(events) != 1 {
		t.Fatalf("got %d events, %v, want 1", len(events), err)
	}
	if state, err = domain.EvolveOrg(state, events[0]); err != nil || state.Name != "Houses" {
		t.Errorf("got %q, %v, want the new name", state.Name, err)
	}
}
