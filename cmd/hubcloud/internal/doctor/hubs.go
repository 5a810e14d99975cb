package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/hublog"
)

const (
	// flapWindow is how far back hubs that flap are looked for.
	flapWindow = time.Hour
	// hubsTimeout bounds the look at their logs, which goes on at flapsAtOnce of them at once;
	// mostEvents is how many events of one are read.
	hubsTimeout = 2 * time.Second
	flapsAtOnce = 16
	mostEvents  = 500
)

// checkHubs says how many hubs are connected, which of them come and go, and which are limited.
func checkHubs(ctx context.Context, p *patient, f *findings) {
	defer checkHubLimits(ctx, p, f)
	all, err := presences(ctx, p)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		f.note("no hub has ever connected")
		return
	}
	if err != nil {
		f.untold("cannot be told: ", err)
		return
	}
	began := time.Now().Add(-flapWindow)
	online := 0
	var moved []domain.Presence // within the window: who flaps has done so
	for _, hub := range all {
		if hub.Online {
			online++
		}
		if hub.Since.After(began) {
			moved = append(moved, hub)
		}
	}
	f.note("%d of the %d hubs that have ever connected are connected now", online, len(all))
	flapping, looked, err := flaps(ctx, p, moved, began)
	if err != nil {
		f.untold("which of them flap cannot be told: ", err)
		return
	}
	if looked < len(moved) {
		f.note(
			"there was time to look at the logs of %d of the %d that came or went within the hour",
			looked, len(moved),
		)
	}
	if len(flapping) == 0 {
		f.note("none was disconnected %d times within the hour", p.Limits.Flaps)
		return
	}
	names := make([]string, len(flapping))
	for i, hub := range flapping {
		names[i] = fmt.Sprintf("%s %d times, last for %q", hub.id, hub.times, hub.reason)
	}
	f.add(
		Warning,
		fmt.Sprintf(
			"%d hubs flap: disconnected within the hour were %s", len(flapping), several(names),
		),
		flapAdvice(flapping),
	)
	f.lead()
}

// flapping is a hub that comes and goes.
type flapping struct {
	id     domain.HubID
	times  int
	reason string
}

// flapAdvice goes by what the broker says most.
func flapAdvice(all []flapping) string {
	for _, hub := range all {
		if hub.reason == "duplicate client id" {
			return fmt.Sprintf(
				"two devices connect as %s with one certificate: find the copy, and reset the hub's link",
				hub.id,
			)
		}
	}
	return "see each hub's network and power; many at once are this side's network, a proxy that " +
		"cuts idle connections, or too few open files"
}

// presences reads the presence of every hub that has ever connected. A watch reads one server's
// copy of the bucket: one that is behind shows a hub as it was some seconds ago, and the doctor's
// next visit shows the rest.
func presences(ctx context.Context, p *patient) ([]domain.Presence, error) {
	conns, err := p.broker()
	if err != nil {
		return nil, errNoBroker
	}
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		return nil, err
	}
	bucket, err := js.KeyValue(ctx, streams.PresenceBucket)
	if err != nil {
		return nil, err
	}
	watch, err := bucket.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, err
	}
	defer func() { _ = watch.Stop() }() // fails only with the connection
	var all []domain.Presence
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case entry := <-watch.Updates():
			if entry == nil { // that was all
				return all, nil
			}
			var hub domain.Presence
			if err := json.Unmarshal(entry.Value(), &hub); err != nil {
				return nil, fmt.Errorf("the presence of %s: %w", entry.Key(), err)
			}
			all = append(all, hub)
		}
	}
}

// flaps looks into the logs of hubs for those that were disconnected too often, the worst first. It
// looks at as many as there is time for.
func flaps(
	ctx context.Context, p *patient, hubs []domain.Presence, since time.Time,
) (found []flapping, looked int, err error) {
	conns, err := p.broker()
	if err != nil {
		return nil, 0, err
	}
	logs, err := hublog.New(conns, hublog.Config{
		Retention: 24 * time.Hour,
		Epoch:     func(domain.HubID) (domain.Epoch, bool) { return domain.Epoch{}, false },
	})
	if err != nil {
		return nil, 0, err
	}
	defer logs.Close()
	ctx, cancel := context.WithTimeout(ctx, hubsTimeout)
	defer cancel()
	counts := make([]flapping, len(hubs))
	var done atomic.Int64
	var group errgroup.Group
	group.SetLimit(flapsAtOnce)
	for i, hub := range hubs {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			ends, err := logs.Disconnections(ctx, hub.HubID, since, mostEvents)
			if ctx.Err() != nil {
				return nil // there is no more time
			}
			if err != nil {
				return err
			}
			done.Add(1)
			if len(ends) > 0 {
				counts[i] = flapping{hub.HubID, len(ends), ends[len(ends)-1].Reason}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	for _, c := range counts {
		if c.times >= p.Limits.Flaps {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b flapping) int { return cmp.Compare(b.times, a.times) })
	return found, int(done.Load()), nil
}
