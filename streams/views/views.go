package views

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// Views writes the views of the groups that this process serves. All methods may be called at any
// time, from any goroutine.
type Views struct {
	cfg     Config
	metrics *metrics
	// groups are those that are written now, by their numbers.
	groups []atomic.Pointer[group]
	// cuts joins the concurrent cuts of one view.
	cuts singleflight.Group
	// hook is called by tests between the steps of the work.
	hook func(step string)

	mu sync.Mutex
	// ended has the epoch of each log that has ended because the journal had lost the log's end.
	ended map[domain.HubID]domain.EpochID
}

// New returns Views. It panics if cfg.Metrics has their metrics already. cfg.Journal may be opened
// later.
func New(cfg Config) (*Views, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	v := &Views{
		cfg: cfg, metrics: newMetrics(cfg.Metrics),
		groups: make([]atomic.Pointer[group], cfg.Journal.Groups()),
		ended:  map[domain.HubID]domain.EpochID{},
	}
	return v, nil
}

// Run writes the views of a group until ctx ends, and then for some seconds what they still lack,
// unless ctx ended for a cause, as that the lease is lost. The next Run, of this or another process,
// writes the rest. It returns nil, or the error without which it cannot begin. The caller must hold
// the group's lease, and the journal must be open.
func (v *Views) Run(ctx context.Context, number int) error {
	g, err := newGroup(v, number)
	if err != nil {
		return err
	}
	v.groups[number].Store(g)
	defer v.groups[number].CompareAndSwap(g, nil)
	return g.run(ctx)
}

// Begin makes sure that a hub's view is not longer than the hub's log in the journal, before the
// log gets more records. Otherwise the journal has lost the log's end and gives its sequences out
// again: the log begins a new epoch, and the view is deleted. A view whose server is away is
// compared once it is back. Begin returns the epoch that this process has ended, zero for none.
func (v *Views) Begin(ctx context.Context, hub domain.HubID) (ended domain.EpochID, err error) {
	if err := v.cut(ctx, v.api(hub).WithRetry(askOnce), hub); err != nil {
		return ended, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ended[hub], nil
}

// Released empties the view of a hub that IsReleased reports. It must be called in each process: the
// one that writes the view does it, or the next one, which finds it at its start.
func (v *Views) Released(hub domain.HubID) {
	g := v.groups[v.cfg.Journal.GroupOfHub(hub)].Load()
	if g == nil {
		return
	}
	s := g.shardOf(hub)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view(hub).fallBehind()
}

// askOnce is the policy for a request without which an append can go on.
var askOnce = jsapi.Retry{
	Total: time.Second, Try: time.Second, If: func(error) bool { return false },
}

// cut deletes a view that is longer than its log, once the log has a new epoch.
func (v *Views) cut(ctx context.Context, api jsapi.API, hub domain.HubID) error {
	info, err := api.Info(ctx, streams.HubStream(hub))
	if err != nil || !v.isTooLong(hub, info.State.LastSeq) {
		return nil
	}
	_, err, _ = v.cuts.Do(string(hub), func() (any, error) {
		// Another caller may have cut it since.
		info, err := api.Info(ctx, streams.HubStream(hub))
		if err != nil || !v.isTooLong(hub, info.State.LastSeq) {
			return nil, nil
		}
		tip, _ := v.cfg.Journal.Tip(hub)
		v.cfg.Logger.Warn(
			"the journal has lost the end of a hub log; the log begins a new epoch", "hub_id", hub,
			"kept", tip.Seq, "lost", info.State.LastSeq,
		)
		ended, err := v.cfg.LostEnd(ctx, hub, tip.Seq)
		if err != nil {
			return nil, fmt.Errorf("begin a new epoch of the log of %s: %w", hub, err)
		}
		if !ended.IsZero() {
			v.mu.Lock()
			v.ended[hub] = ended
			v.mu.Unlock()
		}
		v.step("delete")
		return nil, api.Delete(ctx, streams.HubStream(hub))
	})
	return err
}

// isTooLong reports whether a view that ends with a sequence is longer than its log.
func (v *Views) isTooLong(hub domain.HubID, end uint64) bool {
	tip, _ := v.cfg.Journal.Tip(hub)
	return end > tip.Seq
}

func (v *Views) api(hub domain.HubID) jsapi.API { return jsapi.New(v.cfg.Conns.Shard(hub)) }

func (v *Views) step(name string) {
	if v.hook != nil {
		v.hook(name)
	}
}
