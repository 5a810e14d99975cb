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
	"hubcloud/streams/feed"
	"hubcloud/streams/jsapi"
)

const (
	// flapWindow is the time for which disconnections are counted.
	flapWindow = time.Hour
	// hubsTimeout bounds the read of the hub logs.
	hubsTimeout = 2 * time.Second
	// concurrentLogs is how many logs are read at once.
	concurrentLogs = 16
	// maxEvents is how many events of one log are read.
	maxEvents = 500
)

// checkHubs checks how many hubs are connected, which of them flap, which are limited, and which
// break the hub protocol.
func checkHubs(ctx context.Context, t *target, f *findings) {
	defer checkHubFaults(ctx, t, f)
	defer checkHubLimits(ctx, t, f)
	all, err := presences(ctx, t)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		f.note("no hub has ever connected")
		return
	}
	if err != nil {
		f.unknown("unknown: ", err)
		return
	}
	began := time.Now().Add(-flapWindow)
	online := 0
	var moved []domain.Presence // hubs whose presence changed within the window
	for _, hub := range all {
		if hub.Online {
			online++
		}
		if hub.Since.After(began) {
			moved = append(moved, hub)
		}
	}
	f.note("%d of the %d hubs that have ever connected are connected now", online, len(all))
	flapping, looked, err := flaps(ctx, t, moved, began)
	if err != nil {
		f.unknown("which of them flap is unknown: ", err)
		return
	}
	if looked < len(moved) {
		f.note(
			"only %d of the %d logs of hubs that connected or disconnected within the hour were "+
				"read in time",
			looked, len(moved),
		)
	}
	if len(flapping) == 0 {
		f.note("none was disconnected %d times within the hour", t.Limits.Flaps)
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
	f.putLastFirst()
}

// flapping is a hub that is disconnected too often.
type flapping struct {
	id     domain.HubID
	times  int
	reason string
}

// flapAdvice returns advice that depends on the broker's reasons for the disconnections.
func flapAdvice(all []flapping) string {
	for _, hub := range all {
		if hub.reason == "duplicate client id" {
			return fmt.Sprintf(
				"two devices connect as %s with the same certificate: find the copy, and reset "+
					"the hub's link",
				hub.id,
			)
		}
	}
	return "check each hub's network and power; if many hubs flap, check the cloud's network, " +
		"proxies that cut idle connections, and the limit of open files"
}

// presences returns the presence of every hub that has ever connected. It reads one server's copy
// of the bucket, which may be some seconds behind.
func presences(ctx context.Context, t *target) ([]domain.Presence, error) {
	conns, err := t.broker()
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
	var all []domain.Presence
	err = jsapi.Each(ctx, bucket, func(entry jetstream.KeyValueEntry) error {
		var hub domain.Presence
		if err := json.Unmarshal(entry.Value(), &hub); err != nil {
			return fmt.Errorf("the presence of %s: %w", entry.Key(), err)
		}
		all = append(all, hub)
		return nil
	})
	return all, err
}

// flaps returns the hubs that were disconnected too often, the worst first, and how many logs it
// could read in time.
func flaps(
	ctx context.Context, t *target, hubs []domain.Presence, since time.Time,
) (found []flapping, looked int, err error) {
	conns, err := t.broker()
	if err != nil {
		return nil, 0, err
	}
	logs, err := feed.New(conns, feed.Config{
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
	group.SetLimit(concurrentLogs)
	for i, hub := range hubs {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			ends, err := logs.Disconnections(ctx, hub.HubID, since, maxEvents)
			if ctx.Err() != nil {
				return nil // a partial result is good enough
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
		if c.times >= t.Limits.Flaps {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b flapping) int { return cmp.Compare(b.times, a.times) })
	return found, int(done.Load()), nil
}
