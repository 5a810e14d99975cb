package population

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// Config is the size and the seed of a population.
type Config struct {
	// Events is the minimum number of events to write, over Orgs organizations.
	Events, Orgs int
	// Environment is the environment of the API keys. It must be the installation's.
	Environment string
	// Seed selects the random changes. Populations in one installation need different seeds.
	Seed uint64
}

// past is the time over which the events are spread. The last event is from now.
const past = 60 * 24 * time.Hour

// Org is the final content of an organization.
type Org struct {
	ID, Name string
	// Key is an API key with all scopes.
	Key string
	// Sites are in order of creation, Hubs in order of their ids, Members in the order in which
	// they joined.
	Sites   []Site
	Hubs    []Hub
	Members []domain.OrgMember
}

// Site is a site of an organization.
type Site struct{ ID, Name string }

// Hub is a hub of an organization. Name is nil when the hub has no name.
type Hub struct {
	ID, SiteID string
	Name       *string
}

// Population is the result of Write.
type Population struct {
	Orgs []Org
	// Events is the number of events written. Head is the stream sequence of the last one.
	Events int
	Head   uint64
}

// Write fills the directory, whose stream must exist, and stores the presence of some of the hubs.
// Nothing else may write to these organizations at the same time.
func Write(ctx context.Context, conns *streams.Conns, cfg Config) (Population, error) {
	w := &writer{
		nc: conns.Cloud, cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0x706f70)),
		at: time.Now().Add(-past),
		step: past / time.Duration(
			cfg.Events+cfg.Orgs,
		), entropy: ulid.Monotonic(rand.NewChaCha8([32]byte{byte(cfg.Seed)}), 0),
	}
	orgs := make([]*org, cfg.Orgs)
	for i := range orgs {
		var err error
		if orgs[i], err = w.begin(i); err != nil {
			return Population{}, err
		}
		if err := w.writeFullBatch(ctx); err != nil {
			return Population{}, err
		}
	}
	for n := 0; w.events < cfg.Events; n++ {
		if err := orgs[n%len(orgs)].change(); err != nil {
			return Population{}, err
		}
		if err := w.writeFullBatch(ctx); err != nil {
			return Population{}, err
		}
	}
	if err := w.flush(ctx); err != nil {
		return Population{}, err
	}
	made := Population{Events: w.events, Head: w.head}
	for _, o := range orgs {
		if err := o.presence(ctx, conns); err != nil {
			return Population{}, err
		}
		made.Orgs = append(made.Orgs, o.result())
	}
	return made, nil
}

// writer appends events in batches.
type writer struct {
	nc      *nats.Conn
	cfg     Config
	random  *rand.Rand
	entropy *ulid.MonotonicEntropy
	// at is the time of the latest command. step is the time between two commands.
	at   time.Time
	step time.Duration

	// batch has the events that are not written yet.
	batch  []*nats.Msg
	events int
	head   uint64
}

// origin returns the origin of the next command.
func (w *writer) origin(actor domain.Actor) domain.Origin {
	w.at = w.at.Add(w.step)
	return domain.Origin{At: w.at, Actor: actor}
}

// id returns a new id in the service's format.
func (w *writer) id() string {
	var entropy [10]byte
	for i := range entropy {
		entropy[i] = byte(w.random.Uint32())
	}
	return domain.NewUUIDv7(w.at, entropy)
}

// add appends the events of a command to the batch.
func (w *writer) add(subject string, events []domain.Event) error {
	for _, e := range events {
		id, err := ulid.New(ulid.Timestamp(e.At), w.entropy)
		if err != nil {
			return err
		}
		e.ID = id.String()
		data, err := domain.EncodeEvent(e)
		if err != nil {
			return err
		}
		w.batch = append(w.batch, &nats.Msg{Subject: subject, Data: data})
	}
	w.events += len(events)
	return nil
}

// writeFullBatch writes the batch if it is large.
func (w *writer) writeFullBatch(ctx context.Context) error {
	if len(w.batch) < jsapi.MaxBatch/2 {
		return nil
	}
	return w.flush(ctx)
}

// flush writes the batch.
func (w *writer) flush(ctx context.Context) (err error) {
	for part := range slices.Chunk(w.batch, jsapi.MaxBatch) {
		if w.head, err = jsapi.Append(ctx, w.nc, part...); err != nil {
			return fmt.Errorf("write %d events: %w", len(part), err)
		}
	}
	w.batch = w.batch[:0]
	return nil
}
