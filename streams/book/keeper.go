package book

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// MaxEntries is the most entries of a book. Each has at most domain.MaxBookEvent bytes, and names.
	MaxEntries = 500_000
	// SweepEvery is how often it is looked for what a book does not keep any more.
	SweepEvery = 10 * time.Minute
	// batch is the most entries that are appended at once.
	batch = 100
	// saveEvery is how often the position of a book is stored while nothing is appended.
	saveEvery = time.Minute
	// firstPause and maxPause bound the pause after an error.
	firstPause, maxPause = time.Second, 30 * time.Second
)

// Config configures a Keeper. Fields without a default are required.
type Config struct {
	Log *Log `check:"set"`
	// Progress is the bucket of how far books have come.
	Progress jsapi.Bucket
	// Read returns a reader of the events of an organization after a position of its feed or, without
	// one, that were stored at a time or later.
	Read func(ctx context.Context, org, after string, since time.Time) (Reader, error) `check:"set"`
	// Hubs returns the hubs of an organization with every change of the directory before the call.
	Hubs func(ctx context.Context, org string) ([]domain.HubID, error) `check:"set"`
	// Follow calls fn with the books of organizations, as they are and as they change.
	Follow func(ctx context.Context, fn func(org string, b domain.Book)) error `check:"set"`
	// Describe returns the entry of each event, without OrgID and Position. An event that is
	// not to be kept has no kind.
	Describe func(
		ctx context.Context, org string, keep domain.BookSettings, events []domain.EncodedEvent,
	) ([]domain.BookEntry, error) `check:"set"`
	// Parts is how many parts the books are divided into, each of which has a lease.
	Parts int `check:"positive"`
	// Retention is how long the hub logs keep events.
	Retention time.Duration `check:"positive"`
	// MaxEntries defaults to the constant, Now to time.Now, Logger to slog.Default().
	MaxEntries uint64
	Now        func() time.Time
	Logger     *slog.Logger
}

// Reader reads the feed of an organization. The cursor of an event is its position.
type Reader = streams.EventReader

// Keeper writes the books of organizations. It is safe for concurrent use.
type Keeper struct {
	cfg Config
	// appends bounds the batches under way: the broker takes few of a stream.
	appends sync.Mutex

	// books are those that were ever chosen, by organization.
	books *streams.Tasks[domain.Book]

	mu sync.Mutex
	// released is closed when a hub was released.
	released chan struct{}
}

// NewKeeper returns a Keeper.
func NewKeeper(cfg Config) (*Keeper, error) {
	cfg.MaxEntries = cmp.Or(cfg.MaxEntries, MaxEntries)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Keeper{
		cfg: cfg, books: streams.NewTasks[domain.Book](),
		released: make(chan struct{}),
	}, domain.CheckFields("books", cfg)
}

// Follow learns of books and their changes until ctx ends.
func (k *Keeper) Follow(ctx context.Context) error {
	return k.cfg.Follow(ctx, func(org string, b domain.Book) {
		k.books.Set(org, map[string]domain.Book{org: b})
	})
}

// Released makes the books delete what they have of a hub that was released.
func (k *Keeper) Released() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.released)
	k.released = make(chan struct{})
}

func (k *Keeper) signal() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.released
}

// Serve writes the books of a part, until ctx ends. held reports whether the lease of the part is
// still held.
func (k *Keeper) Serve(ctx context.Context, part int, held func() bool) error {
	return k.books.Serve(
		ctx, part, k.cfg.Parts, func(ctx context.Context, org string, b domain.Book) {
			k.run(ctx, org, b, held)
		},
	)
}

// progress is how far a book has come: everything up to Position was looked at, at the time At, when
// the last entry was Last. It is of the book that was begun at Since.
type progress struct {
	Since    time.Time `json:"since"`
	Position string    `json:"position"`
	At       time.Time `json:"at"`
	Last     uint64    `json:"last"`
}

// writer writes one book. One goroutine uses it.
type writer struct {
	*Keeper
	org    string
	book   domain.Book
	held   func() bool
	logger *slog.Logger

	progress progress
	revision uint64
}

// errLost is why a process does not go on, and errSwept why a writer begins again: the last entry may
// be another one.
var errLost, errSwept = errors.New("the lease is lost"), errors.New("entries were deleted")

func (k *Keeper) run(ctx context.Context, org string, b domain.Book, held func() bool) {
	w := &writer{Keeper: k, org: org, book: b, held: held, logger: k.cfg.Logger.With("org_id", org)}
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		begun := time.Now()
		err := w.follow(ctx)
		if ctx.Err() != nil || errors.Is(err, errLost) {
			return
		}
		if errors.Is(err, errSwept) {
			pause = firstPause / 2
			continue
		}
		w.logger.Warn("book not written; trying again", "error", err)
		if time.Since(begun) > time.Minute {
			pause = firstPause
		}
		streams.Sleep(ctx, pause)
	}
}

// follow writes the book until ctx ends or something fails.
func (w *writer) follow(ctx context.Context) error {
	released := w.signal()
	if err := w.sweep(ctx); err != nil && !errors.Is(err, errSwept) {
		return err
	}
	if len(w.book.Kinds) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	reader, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()
	defer w.saveLast(ctx)
	sweep := time.NewTicker(SweepEvery)
	defer sweep.Stop()
	save := time.NewTicker(min(saveEvery, w.cfg.Retention/8))
	defer save.Stop()
	for {
		events, err := reader.Next(ctx, batch)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			if err := w.append(ctx, events); err != nil {
				return err
			}
		}
		w.progress.Position, w.progress.At = reader.Cursor(), w.cfg.Now()
		if len(events) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-reader.Ready():
			continue
		case <-save.C:
			err = w.save(ctx)
		case <-sweep.C:
			err = w.sweep(ctx)
		case <-released:
			released = w.signal()
			err = w.sweep(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// open returns a reader of the events that the book lacks. If some of them have expired, the book
// gets an entry for them.
func (w *writer) open(ctx context.Context) (Reader, error) {
	entry, last, err := w.cfg.Log.last(ctx, w.org)
	if err != nil {
		return nil, err
	}
	var stored progress
	saved, err := w.cfg.Progress.GetJSON(ctx, progressKey(w.org), &stored)
	if err != nil {
		return nil, err
	}
	w.revision = saved.Revision
	if !stored.Since.Equal(w.book.Since) {
		stored = progress{Since: w.book.Since, At: w.book.Since}
	}
	if last > stored.Last { // an entry that was appended since it was saved
		stored.Position, stored.At = entry.Position, entry.Stored
	}
	stored.Last = last
	w.progress = stored
	oldest := w.cfg.Now().Add(-w.cfg.Retention)
	if stored.Position == "" && stored.At.After(oldest) {
		return w.cfg.Read(ctx, w.org, "", stored.At)
	}
	if stored.Position != "" {
		reader, err := w.cfg.Read(ctx, w.org, stored.Position, time.Time{})
		// A position of another number of journals is as good as an expired one.
		if code := domain.CodeOf(err); code != domain.CodeCursorExpired && code != domain.CodeInvalidRequest {
			return reader, err
		}
	}
	reader, err := w.cfg.Read(ctx, w.org, "", oldest)
	if err != nil {
		return nil, err
	}
	w.logger.Warn("events of a book have expired", "from", stored.At, "to", oldest)
	gap := domain.BookEntry{
		Kind: domain.BookGap, At: stored.At.UTC(), Stored: oldest.UTC(),
		Text:  "Entries may be missing: the service did not read the events in time",
		Event: []byte(`{"type":"` + domain.EventFeedGap + `"}`),
	}
	if err := w.store(ctx, []domain.BookEntry{gap}, []string{reader.Cursor()}); err != nil {
		reader.Close()
		return nil, err
	}
	return reader, nil
}

// append appends the entries of events.
func (w *writer) append(ctx context.Context, events []domain.EncodedEvent) error {
	all, err := w.cfg.Describe(ctx, w.org, w.book.BookSettings, events)
	if err != nil {
		return err
	}
	var kept []domain.BookEntry
	var positions []string
	for i, e := range all {
		if w.book.Kept(e.Kind) {
			kept, positions = append(kept, e), append(positions, events[i].Cursor)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return w.store(ctx, kept, positions)
}

func (w *writer) store(ctx context.Context, entries []domain.BookEntry, positions []string) error {
	for i := range entries {
		entries[i].OrgID, entries[i].Position = w.org, positions[i]
	}
	w.appends.Lock()
	defer w.appends.Unlock()
	if !w.held() {
		return errLost
	}
	last, err := w.cfg.Log.append(ctx, w.org, w.progress.Last, entries)
	if err == nil {
		w.progress.Last = last
	}
	return err
}

// sweep deletes what the book does not keep any more. If there was any, it returns errSwept.
func (w *writer) sweep(ctx context.Context) error {
	if !w.held() {
		return errLost
	}
	cut, err := w.cfg.Log.sweep(
		ctx, w.org, w.book.BookSettings, w.cfg.Now(), w.cfg.MaxEntries,
		func() (map[domain.HubID]bool, error) {
			hubs, err := w.cfg.Hubs(ctx, w.org)
			known := map[domain.HubID]bool{}
			for _, hub := range hubs {
				known[hub] = true
			}
			return known, err
		},
	)
	if err == nil && cut {
		w.logger.Info("entries of a book deleted")
		return errSwept
	}
	return err
}

func progressKey(org string) string { return "book-" + org }

func (w *writer) save(ctx context.Context) error {
	if !w.held() {
		return errLost
	}
	revision, err := w.cfg.Progress.CompareAndSetJSON(
		ctx, progressKey(w.org), w.progress, w.revision,
	)
	if err == nil {
		w.revision = revision
	}
	return err
}

// saveLast stores the position when the writer ends.
func (w *writer) saveLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := w.save(ctx); err != nil && !errors.Is(err, errLost) {
		w.logger.Warn("position of a book not stored", "error", err)
	}
}
