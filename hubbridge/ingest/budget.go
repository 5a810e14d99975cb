package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/shares"
)

// BudgetConfig bounds what hubs store and send. Conns and Ownership are required by Run.
type BudgetConfig struct {
	// Conns are the connections to the accounts of the hubs' streams, and Ownership has the
	// organizations of the hubs.
	Conns     *streams.Conns
	Ownership Ownership
	// HubBytes is how many bytes of disk the events of one hub may take. Defaults to
	// DefaultHubBytes. DiskBytes is how many there are for all hubs; 0 if that is not known.
	HubBytes, DiskBytes int64
	// Shares reports the budget; nil reports nothing.
	Shares *shares.Registry
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

const (
	// DefaultHubBytes is the space of some 40 small events a second, day and night: a building with
	// thousands of devices. A hub that was away for a day sends what it holds at once.
	DefaultHubBytes = 4 << 30
	// unknownDisk stands for a disk whose size is not known: one petabyte.
	unknownDisk = 1 << 50
	// diskLeave is the part of the disk that an organization leaves: a quarter of what the others
	// leave it.
	diskLeave = 4
	// measureEvery is the time between two measurements of what hubs have stored.
	measureEvery = 5 * time.Minute
	// hubMessages and hubMessageBurst bound the messages of one hub that are looked at. A hub sends
	// at most protocol.MaxUnacknowledged events without an ack, at worst each in its own message.
	hubMessages, hubMessageBurst = 2500, 5000
	// hubHellos a second, and hubHelloBurst at once, are the hellos of one hub that are handled. Each
	// writes the presence bucket. A hub repeats its hello every five seconds until it has an ack.
	hubHellos, hubHelloBurst = 1, 30
	// budgetPause is the time for which a hub beyond its budget is not listened to.
	budgetPause = 5 * time.Second
	// eventsPerProcessor is how many events of an organization's hubs a process stores in a second for
	// each processor while others use it: about an eighth of what it takes to store as many as it
	// can. eventsAhead are the seconds of them that are stored without a wait, and eventsDebt those
	// that hubs are behind at most.
	eventsPerProcessor      = 1000
	eventsAhead, eventsDebt = 0.1, 20
	// sharedEvents are enough for one turn of a hub while others use the service.
	sharedEvents = 50
	// eventBytes of payload count as one more event.
	eventBytes = 4 << 10
	// copies is how often an event is on the disk: in the journal, and in its hub's log.
	copies = 2
)

// Budget bounds what hubs store and send at one replica. Beyond it a hub gets no ack, keeps its
// events, and continues later. While other organizations use the replica, the hubs of one also wait
// for their acks once it has many events a second. What hubs have stored is measured: as long as Run
// runs, restarts and other replicas change nothing.
type Budget struct {
	cfg      BudgetConfig
	bytes    *shares.Pool
	messages *shares.Rate[domain.HubID]
	hellos   *shares.Rate[domain.HubID]
	order    *shares.Turns
	events   *shares.Rate[string]
	measured map[domain.HubID]int64
}

// NewBudget returns a Budget for all shards of a replica.
func NewBudget(cfg BudgetConfig) *Budget {
	cfg.HubBytes = cmp.Or(cfg.HubBytes, DefaultHubBytes)
	cfg.DiskBytes = cmp.Or(cfg.DiskBytes, unknownDisk)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	perSecond := eventsPerProcessor * runtime.GOMAXPROCS(0)
	return &Budget{
		cfg: cfg,
		bytes: shares.NewPool(cfg.Shares, shares.PoolConfig{
			Name: "stored_bytes", What: "bytes of events are stored", Of: "hub",
			Limits: shares.Limits{Total: cfg.DiskBytes, Leave: diskLeave, PerID: cfg.HubBytes},
		}),
		messages: shares.NewRate[domain.HubID](cfg.Shares, shares.RateConfig{
			Name: "messages_of_hubs", PerSecond: hubMessages, Burst: hubMessageBurst,
		}, cfg.Now()),
		hellos: shares.NewRate[domain.HubID](cfg.Shares, shares.RateConfig{
			Name: "hellos_of_hubs", PerSecond: hubHellos, Burst: hubHelloBurst,
		}, cfg.Now()),
		order: shares.NewTurns(cfg.Shares, "messages"),
		events: shares.NewRate[string](cfg.Shares, shares.RateConfig{
			Name: "events", PerSecond: float64(perSecond), Burst: eventsDebt * perSecond,
		}, cfg.Now()),
	}
}

// newTurns returns the order in which the workers of a shard take hubs.
func (b *Budget) newTurns() *shares.Turns {
	if b == nil {
		return shares.NewTurns(nil, "messages")
	}
	return b.order.Another()
}

// Run measures what all hubs have stored, at once and then from time to time, until ctx ends. In
// between, what this replica stores is added. It returns ctx's error.
func (b *Budget) Run(ctx context.Context) error {
	for {
		if err := b.Measure(ctx); err != nil && ctx.Err() == nil {
			b.cfg.Logger.Warn("space of events not measured", "error", err)
		}
		if !streams.Sleep(ctx, measureEvery) {
			return ctx.Err()
		}
	}
}

// Measure counts what the streams of all hubs have. A stream whose server does not answer has what
// it had. It must not be called twice at the same time.
func (b *Budget) Measure(ctx context.Context) error {
	measured, held := map[domain.HubID]int64{}, map[shares.Spender]int64{}
	count := func(hub domain.HubID, bytes int64) {
		if owner, _ := b.cfg.Ownership.Hub(hub); bytes > 0 {
			measured[hub] = bytes
			held[shares.Spender{Org: owner.OrgID, ID: string(hub)}] = copies * bytes
		}
	}
	for _, conn := range b.cfg.Conns.Shards {
		away, err := jsapi.New(conn).List(ctx, func(page []jetstream.StreamInfo) (more bool) {
			for i := range page {
				hub, ok := streams.HubOfStream(page[i].Config.Name)
				if ok && jsapi.CheckLeader(&page[i]) == nil {
					count(hub, int64(page[i].State.Bytes))
				} else if ok {
					count(hub, b.measured[hub])
				}
			}
			return ctx.Err() == nil
		})
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		for _, name := range away {
			if hub, ok := streams.HubOfStream(name); ok {
				count(hub, b.measured[hub])
			}
		}
	}
	b.measured = measured
	b.bytes.Replace(held)
	return nil
}

// errOverBudget reports that a hub, or its organization, has used up its space.
var errOverBudget = errors.New("the space for events is used up")

// allowMessage reports whether another message of a hub is looked at.
func (b *Budget) allowMessage(hub domain.HubID) bool {
	return b == nil || b.messages.Take(hub, b.cfg.Now()).Granted
}

// allowHello reports whether another hello of a hub is handled.
func (b *Budget) allowHello(hub domain.HubID) bool {
	return b == nil || b.hellos.Take(hub, b.cfg.Now()).Granted
}

// spend takes the space of records. It returns errOverBudget if there is none, after which the hub
// is not listened to for a while.
func (s *hubState) spend(records []journal.Record) error {
	b := s.shard.cfg.Budget
	if b == nil || len(records) == 0 {
		return nil
	}
	b.cfg.Shares.Active(s.log.org, b.cfg.Now())
	bytes := int64(0)
	for i := range records {
		bytes += copies * int64(len(records[i].Payload)+eventOverhead)
	}
	who := shares.Spender{Org: s.log.org, ID: string(s.hub)}
	if _, err := b.bytes.Take(who, bytes); err == nil { // a measurement finds what expires
		s.wait = b.pace(s.log.org, len(records)+int(bytes)/copies/eventBytes)
		return nil
	}
	hub, _, most := b.bytes.Held(who)
	of := "of its organization"
	if hub+bytes > b.cfg.HubBytes {
		of, most = "of the hub", b.cfg.HubBytes
	}
	s.unheardUntil = b.cfg.Now().Add(budgetPause)
	s.shard.cfg.Faults.Report(s.hub, FaultTooMuchData, fmt.Sprintf(
		"the events %s take more than %d MiB", of, most>>20,
	))
	return errOverBudget
}

// isShared reports whether others than an organization use the replica.
func (b *Budget) isShared(org string) bool {
	return b != nil && b.cfg.Shares.OthersActive(org, b.cfg.Now())
}

// pace counts events of an organization, and returns how long their hub waits for its next turn: not
// at all while no others use the service. A hub that has few events waits a second for each of them
// at most, however many the others of its organization have.
func (b *Budget) pace(org string, events int) (wait time.Duration) {
	if !b.isShared(org) {
		return 0
	}
	ahead := int(eventsAhead / eventsDebt * float64(b.events.Burst()))
	wait = b.events.SpendAhead(org, events, ahead, b.cfg.Now())
	return min(wait, time.Duration(events)*time.Second)
}

// isUnheard reports whether the hub is beyond its budget and is not listened to yet.
func (s *hubState) isUnheard() bool {
	return !s.unheardUntil.IsZero() && s.shard.cfg.Budget.cfg.Now().Before(s.unheardUntil)
}
