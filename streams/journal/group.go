package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
)

// group is the shards that share a journal.
type group struct {
	number   int
	follower *Follower
	index    *Index
	reader   *Reader
	// queue is nil while this process does not write the journal.
	queue atomic.Pointer[queue]

	mu sync.Mutex
	// offered get what follower delivers. The slice is replaced, never changed.
	offered atomic.Pointer[[]*Follower]
}

// attach makes the group offer its commits to a follower until detach is called.
func (g *group) attach(f *Follower) (detach func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := append(slices.Clone(*g.offered.Load()), f)
	g.offered.Store(&all)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		rest := slices.DeleteFunc(
			slices.Clone(*g.offered.Load()), func(other *Follower) bool { return other == f },
		)
		g.offered.Store(&rest)
	}
}

// Open creates the journals if they are missing, and reads where each hub's log ends. It is called
// before the methods that need the ends of logs; after an error it can be called again.
func (j *Journal) Open(ctx context.Context) error {
	if err := j.Declare(ctx); err != nil {
		return err
	}
	if j.cfg.SyncFolders != nil {
		if err := j.cfg.SyncFolders(streams.AccountCloud); err != nil {
			return fmt.Errorf("sync the folders of the journals: %w", err)
		}
	}
	var groups []*group
	for number := range j.cfg.Groups {
		index, err := j.LoadIndex(ctx, number)
		if err != nil {
			return err
		}
		g := &group{number: number, index: index, reader: j.NewReader(number)}
		g.offered.Store(&[]*Follower{})
		g.follower = j.NewFollower(
			number, index.Position()+1, func(commits []Commit) { j.deliver(g, commits) },
			func(_, to uint64) { index.Skip(to) },
		)
		groups = append(groups, g)
	}
	j.groups = groups
	return nil
}

// deliver adds commits to the index and passes them on to the subscribers.
func (j *Journal) deliver(g *group, commits []Commit) {
	if err := g.index.Apply(commits...); err != nil {
		// The follower delivers every commit or reports it as missing.
		panic(err)
	}
	for _, f := range *j.subscribers.Load() {
		f(g.number, commits)
	}
	for _, f := range *g.offered.Load() {
		for i := range commits {
			f.Offer(commits[i])
		}
	}
	if q := g.queue.Load(); q != nil && commits[len(commits)-1].Term > q.out.Term() {
		q.fence()
	}
}

// Subscribe makes the journal call f with all later commits of each group, in order, each once and
// after it is durable. f must not block.
func (j *Journal) Subscribe(f func(group int, commits []Commit)) {
	j.subscribeMu.Lock()
	defer j.subscribeMu.Unlock()
	all := append(slices.Clone(*j.subscribers.Load()), f)
	j.subscribers.Store(&all)
}

// Groups returns the number of groups.
func (j *Journal) Groups() int { return j.cfg.Groups }

// GroupOf returns the group of a shard.
func (j *Journal) GroupOf(shard int) int { return GroupOf(shard, j.cfg.Groups) }

// GroupOfHub returns the group of a hub.
func (j *Journal) GroupOfHub(hub domain.HubID) int {
	return j.GroupOf(streams.ShardOf(hub, j.cfg.Shards))
}

func (j *Journal) groupOf(hub domain.HubID) *group { return j.groups[j.GroupOfHub(hub)] }

// Run follows the journals, and saves from time to time where each hub's log ends, until ctx ends.
// It returns nil then.
func (j *Journal) Run(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	for _, g := range j.groups {
		running.Go(func() error {
			if err := g.follower.Run(ctx); err != nil && ctx.Err() == nil {
				return err
			}
			return nil
		})
		running.Go(func() error {
			return j.runSnapshots(ctx, g.index, func() bool { return g.queue.Load() != nil })
		})
	}
	return running.Wait()
}

// Lease is what the holder of a group's lease passes to Write. All fields but Begin are required.
type Lease struct {
	// Held reports whether the lease is certainly held at that moment, so that no other replica has
	// opened a writer. A writer that is open stores commits also without that.
	Held func() bool
	// Ready is called each time the group can be appended to.
	Ready func()
	// Begin is called before the first append to a hub's log. Records of the epoch that it returns
	// are rejected: it has ended, and whoever appends them does not know it yet. Nil if there is
	// nothing to be known before.
	Begin func(ctx context.Context, hub domain.HubID) (ended domain.EpochID, err error)
}

// Write writes the journal of a group until ctx ends, and stores what waits before it returns,
// unless the lease is not held then. After an error it begins again once the lease is held. It returns
// ErrFenced if another replica writes the journal.
func (j *Journal) Write(ctx context.Context, number int, lease Lease) error {
	g := j.groups[number]
	for ctx.Err() == nil {
		err := j.writeOnce(ctx, g, lease)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, ErrFenced) && !lease.Held() {
			return err
		}
		j.cfg.Logger.Warn("journal writer stopped; starting again", "group", number, "error", err)
		for streams.Sleep(ctx, reopenPause) && !lease.Held() {
		}
	}
	return nil
}

const (
	// reopenPause is the pause before a writer is opened again after an error.
	reopenPause = 200 * time.Millisecond
	// lastSaveTimeout bounds how long a group that ends saves its index.
	lastSaveTimeout = 3 * time.Second
)

// writeOnce opens a writer and runs it until it fails or ctx ends.
func (j *Journal) writeOnce(ctx context.Context, g *group, lease Lease) error {
	out, err := j.OpenWriter(ctx, g.number, lease.Held)
	if err != nil {
		return err
	}
	// The index must have all commits of the former writers. This writer's first one ends them.
	if err := g.follower.Await(ctx, out.End()); err != nil {
		return err
	}
	q := newQueue(j, g, out, lease)
	stop, err := j.answerOthers(ctx, q)
	if err != nil {
		return err
	}
	g.queue.Store(q)
	lease.Ready()
	err = q.run(ctx)
	g.queue.CompareAndSwap(q, nil)
	stop()
	if lease.Held() && !errors.Is(err, ErrFenced) {
		// The next start then reads nothing of the journal, and knows the ends of all logs also if
		// the journal has expired meanwhile.
		saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSaveTimeout)
		defer cancel()
		if saveErr := j.SaveIndex(saving, g.index); saveErr != nil {
			j.cfg.Logger.Warn("journal index not saved", "group", g.number, "error", saveErr)
		}
	}
	return err
}

// Sync returns once subscribers have got everything that was stored in the hub's log before the
// call. Errors are the broker's and ctx's.
func (j *Journal) Sync(ctx context.Context, hub domain.HubID) error {
	return j.SyncGroup(ctx, j.GroupOfHub(hub))
}

// SyncGroup is Sync for all logs of a group.
func (j *Journal) SyncGroup(ctx context.Context, number int) error {
	g := j.groups[number]
	if q := g.queue.Load(); q != nil && q.lease.Held() && q.committing.Load() == nil {
		// Nobody else commits, and a commit is passed on before its append returns. One that is
		// under way may be stored, and other replicas may have passed it on already.
		return nil
	}
	return g.follower.Sync(ctx)
}

// IsCommitting reports whether a commit of the hub's group that began before a time has an unknown
// outcome. Other replicas may already have it.
func (j *Journal) IsCommitting(hub domain.HubID, before time.Time) bool {
	q := j.groupOf(hub).queue.Load()
	if q == nil {
		return false
	}
	began := q.committing.Load()
	return began != nil && began.Before(before)
}

// Tip returns the end of a hub's log. It returns false for a hub that has no log.
func (j *Journal) Tip(hub domain.HubID) (Tip, bool) { return j.groupOf(hub).index.Tip(hub) }

// Tips returns the ends of all logs of a group, in no order.
func (j *Journal) Tips(number int) iter.Seq2[domain.HubID, Tip] {
	return j.groups[number].index.Tips()
}

// Position returns the sequence of the last commit of a group that this process has followed.
func (j *Journal) Position(number int) uint64 { return j.groups[number].index.Position() }

// Records reads a hub's records: from the sequence from up to to, and about as many bytes as given.
// It returns ErrGone if the journal no longer has the first one.
func (j *Journal) Records(
	ctx context.Context, hub domain.HubID, from, to uint64, bytes int,
) ([]Record, error) {
	g := j.groupOf(hub)
	tip, ok := g.index.Tip(hub)
	if !ok {
		return nil, ErrGone
	}
	return g.reader.Read(ctx, hub, tip, from, to, bytes)
}

// Oldest returns the sequence of a hub's oldest record that was stored at since or later. It
// returns ErrGone if the journal has none.
func (j *Journal) Oldest(
	ctx context.Context, hub domain.HubID, since time.Time,
) (seq uint64, err error) {
	g := j.groupOf(hub)
	tip, ok := g.index.Tip(hub)
	if !ok {
		return 0, ErrGone
	}
	return g.reader.Oldest(ctx, hub, tip, since)
}
