package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
)

const (
	// factsWindow is the time for which resets and certificates are counted, among the last
	// maxFacts events of the directory.
	factsWindow = time.Hour
	maxFacts    = 50_000
	// factsTimeout bounds the read of these events.
	factsTimeout = time.Second
)

// checkHubLimits reports hubs that are reset, or issued certificates, so often that the service
// limits them.
func checkHubLimits(ctx context.Context, t *target, f *findings) {
	busy, err := busyHubs(ctx, t)
	if err != nil {
		if !errors.Is(err, errNoBroker) && !errors.Is(err, jetstream.ErrStreamNotFound) {
			f.unknown("which of them are limited is unknown: ", err)
		}
		return
	}
	if len(busy) == 0 {
		return
	}
	names := make([]string, len(busy))
	for i, hub := range busy {
		names[i] = fmt.Sprintf(
			"%s (%d resets, %d certificates)", hub.id, hub.resets, hub.certificates,
		)
	}
	f.add(
		Warning,
		fmt.Sprintf(
			"%d hubs are reset or enrol too often: within the hour %s", len(busy), several(names),
		),
		"replace a hub that loses its memory at each start; block a hub that may be stolen: "+
			"hubcloud inventory block SERIAL",
	)
	f.putLastFirst()
}

// busyHub counts the resets and certificates of a hub within factsWindow.
type busyHub struct {
	id                   domain.HubID
	resets, certificates int
}

func (b busyHub) most() int { return max(b.resets, b.certificates) }

// busyHubs returns the hubs over the limit, those with the most events first.
func busyHubs(ctx context.Context, t *target) ([]busyHub, error) {
	conns, err := t.broker()
	if err != nil {
		return nil, errNoBroker
	}
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		return nil, err
	}
	if _, err := js.Stream(ctx, streams.DirectoryStream); err != nil {
		return nil, err
	}
	log, err := directory.Open(ctx, conns, 0)
	if err != nil {
		return nil, err
	}
	head, err := log.Head(ctx, 0)
	if err != nil {
		return nil, err
	}
	hubs := map[domain.HubID]busyHub{}
	since := time.Now().Add(-factsWindow)
	reading, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	first := head - min(head, maxFacts)
	err = log.Replay(reading, first, head, func(batch []directory.Recorded) error {
		for _, r := range batch {
			if r.Event.At.Before(since) {
				continue
			}
			switch fact := r.Fact.(type) {
			case domain.HubLogBegun:
				hub := hubs[fact.HubID]
				hub.resets++
				hubs[fact.HubID] = hub
			case domain.HubCertificateIssued:
				hub := hubs[fact.HubID]
				hub.certificates++
				hubs[fact.HubID] = hub
			}
		}
		return nil
	})
	if err != nil && (!errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil) {
		return nil, err
	}
	var busy []busyHub
	for id, hub := range hubs {
		if hub.id = id; hub.most() >= t.Limits.HubFacts {
			busy = append(busy, hub)
		}
	}
	slices.SortFunc(
		busy,
		func(a, b busyHub) int {
			return cmp.Or(cmp.Compare(b.most(), a.most()), cmp.Compare(a.id, b.id))
		},
	)
	return busy, nil
}
