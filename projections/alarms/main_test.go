package alarms_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
	"hubcloud/projections/alarms"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/readmodel"
	"hubcloud/streams/journal"
	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { projectionstest.Main(m) }

// env is an installation with an organization and an outbox.
type env struct {
	*projectionstest.Backend
	org *projectionstest.Organization
	// seqs are the last sequences of the hubs' logs.
	seqs map[domain.HubID]uint64

	mu sync.Mutex
	// ahead is how far the notifiers' clock is ahead.
	ahead time.Duration
	// queued are the IDs of the mails that were queued, by "<member> <begin|end> <title>: <hub>". A
	// notifier that is stopped may queue a mail again, which the outbox ignores for its ID.
	queued map[string]map[string]bool
	// full makes the queue reject the mails of an organization, and onlyUrgent all that are not
	// urgent.
	full       string
	onlyUrgent bool
	// observed is how often each organization was observed.
	observed map[string]int
}

// ObserveOrg implements alarms.Hubs.
func (e *env) ObserveOrg(
	ctx context.Context, org string, watched map[domain.HubID][]int64,
) ([]readmodel.ObservedHub, error) {
	e.mu.Lock()
	e.observed[org]++
	e.mu.Unlock()
	return e.Store.ObserveOrg(ctx, org, watched)
}

// OrgsNeedingAttention implements alarms.Hubs.
func (e *env) OrgsNeedingAttention(ctx context.Context) ([]string, error) {
	return e.Store.OrgsNeedingAttention(ctx)
}

// OrgsOf implements alarms.Hubs.
func (e *env) OrgsOf(
	ctx context.Context, hubs []domain.HubID,
) (map[domain.HubID]string, error) {
	return e.Store.OrgsOf(ctx, hubs)
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{
		Backend: projectionstest.StartBackend(t), seqs: map[domain.HubID]uint64{},
		queued: map[string]map[string]bool{}, observed: map[string]int{},
	}
	e.org = e.NewOrganization(t, "Mill", "olga@example.org")
	return e
}

func (e *env) clock() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Now().Add(e.ahead)
}

// advance moves the notifiers' clock.
func (e *env) advance(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ahead += d
}

// start runs a notifier until the test ends or stop is called.
func (e *env) start(t *testing.T) (stop func()) {
	t.Helper()
	return e.startEvery(t, 20*time.Millisecond)
}

func (e *env) startEvery(t *testing.T, interval time.Duration) (stop func()) {
	t.Helper()
	n, err := alarms.New(alarms.Config{
		Database: e.Store.ConnConfig(), Hubs: e, Org: e.Directory.Org,
		SilentHubs: func(context.Context) (map[domain.HubID]time.Time, error) { return nil, nil },
		Records:    outbox.OpenAlarmRecords(e.Conns.Cloud), Send: e.send,
		Rules: attention.MailRules{
			MailsPerHour: 20,
			Title:        func(c attention.Condition) string { return string(c.Kind) },
		},
		Interval: interval, Now: e.clock, Logger: projectionstest.Logger(t),
	})
	streamstest.Must(t, err)
	return streamstest.Run(t, "the notifier", n.Run)
}

func (e *env) send(_ context.Context, org domain.OrgState, mail attention.Mail) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if org.ID == e.full || e.onlyUrgent && !mail.Urgent {
		return errors.New("the queue is full")
	}
	member, _ := org.Member(mail.MemberID)
	kind := "begin"
	if !mail.Notices[0].Ended.IsZero() {
		kind = "end"
	}
	n := mail.Notices[0]
	what := fmt.Sprintf("%s %s %s: %s", member.Email, kind, n.Title, n.Hub)
	if e.queued[what] == nil {
		e.queued[what] = map[string]bool{}
	}
	e.queued[what][mail.ID] = true
	return nil
}

// mails returns the mails that were queued, each with how many IDs it had.
func (e *env) mails() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, mail := range slices.Sorted(maps.Keys(e.queued)) {
		all = append(all, fmt.Sprintf("%s ×%d", mail, len(e.queued[mail])))
	}
	return all
}

// await waits for exactly these mails since the test began.
func (e *env) await(t *testing.T, when string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !streamstest.Poll(time.Minute, func() bool { return slices.Equal(e.mails(), want) }) {
		t.Fatalf("%s: got mails %q, want %q", when, e.mails(), want)
	}
}

// report commits that a device reported a value.
func (e *env) report(t *testing.T, hub domain.HubID, device int64, key, value string) {
	t.Helper()
	owner, _, err := e.Directory.Hub(t.Context(), hub)
	streamstest.Must(t, err)
	now := time.Now().UTC()
	e.seqs[hub], err = e.HubLogs.Append(t.Context(), hub, e.seqs[hub], []journal.Record{{
		Kind: journal.KindHubEvent, EpochID: owner.Epoch.ID, OwnLog: "a", Through: e.seqs[hub] + 1,
		Payload: fmt.Appendf(nil,
			`{"type":"channel.observed","hub_id":%q,"device_id":%d,"time":%q,"clock_trusted":true,`+
				`"data":{"key":%q,"endpoint":0,"value":%s}}`,
			hub, device, domain.FormatTime(now), key, value),
	}})
	streamstest.Must(t, err)
}

// settle waits until the notifier has observed what was reported before: a leak that it mails.
func (e *env) settle(t *testing.T, hub domain.HubID, device int64, mails ...string) {
	t.Helper()
	e.report(t, hub, device, "leak", "true")
	e.await(t, fmt.Sprint("leak ", device), mails...)
}
