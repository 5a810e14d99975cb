package alarms_test

import (
	"fmt"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

const olga, max = "olga@example.org", "max@example.org"

func begin(who, what string, hub domain.HubID) string {
	return fmt.Sprintf("%s begin %s: %s ×1", who, what, hub)
}

func end(who, what string, hub domain.HubID) string {
	return fmt.Sprintf("%s end %s: %s ×1", who, what, hub)
}

// Each member who wants it gets one mail when smoke begins and one when it ends, whatever process
// mails, and nobody of another organization gets any.
func TestMails(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.org.NewHub(t)
	e.org.NewMember(t, max, domain.RoleAdmin)
	e.org.NewMember(t, "kim@example.org", domain.RoleMember)
	other := e.NewOrganization(t, "Quay", "eve@example.org")
	foreign := other.NewHub(t)
	stop := e.start(t)
	e.start(t) // stands by, and takes over
	e.report(t, hub, 1, "smoke", "true")
	want := []string{begin(olga, "smoke", hub), begin(max, "smoke", hub)}
	e.await(t, "smoke", want...)
	stop()
	e.report(t, hub, 1, "smoke", "false")
	want = append(want, begin("eve@example.org", "leak", foreign))
	e.settle(t, foreign, 1, want...)
	e.report(t, hub, 2, "heat", "true") // shows that the end of the smoke was observed
	want = append(want, begin(olga, "heat", hub), begin(max, "heat", hub))
	e.await(t, "heat", want...)
	e.advance(11 * time.Second)
	e.await(t, "its end", append(want, end(olga, "smoke", hub), end(max, "smoke", hub))...)
}

// Every round read the states of all organizations, and mails waited for it: the more, the longer.
// Only organizations of which something has changed are observed.
func TestOnlyChangesAreObserved(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	other := e.NewOrganization(t, "Quay", "eve@example.org")
	hub, foreign := e.org.NewHub(t), other.NewHub(t)
	e.startEvery(t, time.Minute)
	e.report(t, foreign, 1, "leak", "true")
	want := []string{begin("eve@example.org", "leak", foreign)}
	e.await(t, "a leak", want...)
	e.report(t, hub, 1, "temperature", "20")
	for _, what := range []string{"smoke", "co", "heat", "leak", "tamper"} {
		e.report(t, hub, 1, what, "true")
		want = append(want, begin(olga, what, hub))
		e.await(t, what, want...)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if got := e.observed[other.ID]; got > 2 {
		t.Errorf("an organization with one change was observed %d times", got)
	}
}

// The first notifier of an installation mails nothing about what stands already.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.org.NewHub(t)
	e.report(t, hub, 1, "smoke", "true")
	e.awaitStates(t, hub, 1)
	stop := e.start(t)
	e.settle(t, hub, 2, begin(olga, "leak", hub))
	stop()
	e.start(t)
	e.report(t, hub, 3, "heat", "true")
	e.await(t, "heat", begin(olga, "leak", hub), begin(olga, "heat", hub))
}

// awaitStates waits until the read models have a number of channels of a hub that may need
// attention.
func (e *env) awaitStates(t *testing.T, hub domain.HubID, count int) {
	t.Helper()
	streamstest.Eventually(t, "reported states", func() bool {
		states, err := e.Store.StatesNeedingAttention(t.Context(), e.org.ID, "", hub)
		return err == nil && len(states) == count
	})
}

// loseStates empties the tables of the states, which are then built again from the journal.
const loseStates = `
	WITH gone AS (DELETE FROM reported_devices), gone_too AS (DELETE FROM reported_channels),
		last AS (DELETE FROM reported_hubs)
	UPDATE checkpoints SET sequence = 0, event_id = '', built = false WHERE projection LIKE 'devices/%'`

// The loss of the states ends nothing and repeats nothing, though they are gone for a while.
func TestStatesAreLost(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.org.NewHub(t)
	e.start(t)
	e.report(t, hub, 1, "smoke", "true")
	e.await(t, "smoke", begin(olga, "smoke", hub))
	want := []string{begin(olga, "smoke", hub)}
	for n, what := range []string{"co", "heat", "tamper"} {
		projectionstest.Execute(
			t, e.Env.URL, "SET search_path = "+e.Store.Schema()+"; "+loseStates,
		)
		e.advance(10 * time.Minute)
		e.report(t, hub, int64(10+n), what, "true")
		want = append(want, begin(olga, what, hub))
		e.await(t, what+" after a loss", want...)
	}
}

// What cannot be queued is tried again, and delays no other organization.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.org.NewHub(t)
	other := e.NewOrganization(t, "Quay", "eve@example.org")
	foreign := other.NewHub(t)
	e.full = e.org.ID
	stop := e.start(t)
	e.report(t, hub, 1, "smoke", "true")
	e.settle(t, foreign, 1, begin("eve@example.org", "leak", foreign))
	stop()
	e.mu.Lock()
	e.full = ""
	e.mu.Unlock()
	e.start(t)
	e.await(
		t, "the queue has space", begin("eve@example.org", "leak", foreign),
		begin(olga, "smoke", hub),
	)
}

// Mails that found no room in the queue held up an alarm that was decided after them.
func TestUrgentMailsPassOthers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.org.NewHub(t)
	e.onlyUrgent = true
	e.start(t)
	e.report(t, hub, 1, "smoke", "true")
	want := []string{begin(olga, "smoke", hub)}
	e.await(t, "smoke", want...)
	e.report(t, hub, 1, "smoke", "false") // its end is not urgent
	want = append(want, begin(olga, "leak", hub))
	e.settle(t, hub, 2, want...)
	e.advance(11 * time.Second)
	want = append(want, begin(olga, "heat", hub))
	e.report(t, hub, 3, "heat", "true")
	e.await(t, "heat while the end is not queued", want...)
	e.mu.Lock()
	e.onlyUrgent = false
	e.mu.Unlock()
	e.await(t, "the queue has space", append(want, end(olga, "smoke", hub))...)
}

// A condition of a hub that was removed is forgotten: its new owner gets mails, the former does
// not.
func TestHubChangesHands(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.org.NewHub(t)
	other := e.NewOrganization(t, "Quay", "eve@example.org")
	e.start(t)
	e.report(t, hub, 1, "smoke", "true")
	e.await(t, "smoke", begin(olga, "smoke", hub))
	ctx := t.Context()
	streamstest.Must(t, e.Directory.RemoveHub(ctx, installationtest.Operator, e.org.ID, hub))
	add := domain.AddHub{OrgID: other.ID, HubID: hub, SiteID: other.SiteID}
	if _, err := e.Directory.AddHub(ctx, installationtest.Operator, add); err != nil {
		t.Fatal(err)
	}
	e.report(t, hub, 1, "smoke", "false")
	e.report(t, hub, 2, "heat", "true")
	e.await(t, "heat", begin(olga, "smoke", hub), begin("eve@example.org", "heat", hub))
	e.advance(time.Hour)
	next := e.org.NewHub(t)
	e.settle(
		t, next, 1, begin(olga, "smoke", hub), begin("eve@example.org", "heat", hub),
		begin(olga, "leak", next),
	)
}
