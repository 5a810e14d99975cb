package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/hubfaults"
	"hubcloud/streams/journal"
	"hubcloud/streams/shares"
)

// BudgetConfig bounds what hubs store and send.
type BudgetConfig struct {
	// Retention is how long events are kept: HubBytes and OrgBytes are regained within it.
	Retention time.Duration
	// HubBytes is how many bytes of disk the events of one hub may take, and OrgBytes of all
	// hubs of an organization. HubBytes defaults to DefaultHubBytes; 0 OrgBytes is no bound.
	HubBytes, OrgBytes int
	// Shares reports the budget; nil reports nothing.
	Shares *shares.Registry
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

const (
	// DefaultHubBytes is the space of some 40 small events a second, day and night: a building with
	// thousands of devices. A hub that was away for a day sends what it holds at once.
	DefaultHubBytes = 4 << 30
	// hubMessages and hubMessageBurst bound the messages of one hub that are looked at. A hub sends
	// at most protocol.MaxUnacknowledged events without an ack, at worst each in its own message.
	hubMessages, hubMessageBurst = 2500, 5000
	// budgetPause is the longest time for which a hub beyond its budget is not listened to.
	budgetPause = 5 * time.Second
	// copies is how often an event is on the disk: in the journal, and in its hub's log.
	copies = 2
)

// Budget bounds what hubs store and send at one replica. Beyond it a hub gets no ack, keeps its
// events, and continues later. It counts from the start of the replica.
type Budget struct {
	hubBytes, orgBytes *shares.Rate[string]
	messages           *shares.Rate[domain.HubID]
	window             time.Duration
	now                func() time.Time
}

// NewBudget returns a Budget for all shards of a replica.
func NewBudget(cfg BudgetConfig) *Budget {
	cfg.HubBytes = cmp.Or(cfg.HubBytes, DefaultHubBytes)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	now := cfg.Now()
	within := func(name string, bytes int) *shares.Rate[string] {
		return shares.NewRate[string](cfg.Shares, shares.RateConfig{
			Name: name, PerSecond: float64(bytes) / cfg.Retention.Seconds(), Burst: bytes,
		}, now)
	}
	return &Budget{
		hubBytes: within("stored_bytes_of_hubs", cfg.HubBytes),
		orgBytes: within("stored_bytes_of_organizations", cfg.OrgBytes),
		messages: shares.NewRate[domain.HubID](cfg.Shares, shares.RateConfig{
			Name: "messages_of_hubs", PerSecond: hubMessages, Burst: hubMessageBurst,
		}, now),
		window: cfg.Retention, now: cfg.Now,
	}
}

// errOverBudget reports that a hub, or its organization, has used up its space.
var errOverBudget = errors.New("the space for events is used up")

// allowMessage reports whether another message of a hub is looked at.
func (b *Budget) allowMessage(hub domain.HubID) bool {
	return b == nil || b.messages.Take(hub, b.now()).Granted
}

// spend takes the space of records. It returns errOverBudget if there is none, after which the hub
// is not listened to for a while.
func (s *hubState) spend(records []journal.Record) error {
	b := s.shard.cfg.Budget
	if b == nil || len(records) == 0 {
		return nil
	}
	bytes := 0
	for i := range records {
		bytes += copies * (len(records[i].Payload) + eventOverhead)
	}
	now, of := b.now(), "of the hub"
	taken := b.hubBytes.TakeN(string(s.hub), bytes, now)
	most := b.hubBytes.Burst()
	if taken.Granted {
		of, most = "of its organization", b.orgBytes.Burst()
		taken = b.orgBytes.TakeN(s.log.org, bytes, now)
	}
	if taken.Granted {
		return nil
	}
	s.unheardUntil = now.Add(min(max(taken.Next, firstPause), budgetPause))
	s.shard.cfg.Faults.Report(s.hub, hubfaults.TooMuchData, fmt.Sprintf(
		"the events %s take more than %d MiB within %s", of, most>>20, b.window,
	))
	return errOverBudget
}

// isUnheard reports whether the hub is beyond its budget and is not listened to yet.
func (s *hubState) isUnheard() bool {
	return !s.unheardUntil.IsZero() && s.shard.cfg.Budget.now().Before(s.unheardUntil)
}
