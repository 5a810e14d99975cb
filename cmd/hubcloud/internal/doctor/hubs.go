package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/hubfaults"
	"hubcloud/streams/directory"
)

const (
	// hubWindow is the time for which disconnections, resets and certificates are counted.
	hubWindow = time.Hour
	// flapsTimeout bounds the read of the hub logs, of which concurrentLogs are read at once, and
	// maxEvents events of each.
	flapsTimeout   = 2 * time.Second
	concurrentLogs = 16
	maxEvents      = 500
	// factsTimeout bounds the read of the directory's last maxFacts events.
	factsTimeout = time.Second
	maxFacts     = 50_000
	// certificatesTimeout bounds the read of the directory. A large directory is read only in part.
	certificatesTimeout = 2500 * time.Millisecond
	// faultsTimeout bounds the questions to the replicas that serve hubs.
	faultsTimeout = time.Second
)

// checkHubs checks how many hubs are connected, which of them flap, which are limited, and which
// break the hub protocol.
func checkHubs(ctx context.Context, v *visit, f *findings) {
	all := v.Presences()
	if len(all) == 0 {
		f.note("no hub has ever connected")
	} else {
		checkFlaps(ctx, v, all, f)
	}
	checkHubLimits(ctx, v, f)
	checkHubFaults(ctx, v, f)
}

// namedHub is a hub with a finding, and how grave that is.
type namedHub struct {
	id    domain.HubID
	grade int
	text  string
}

// nameHubs adds a warning about hubs, as the first detail: those with the highest grade are named.
func (f *findings) nameHubs(hubs []namedHub, advice, format string, args ...any) {
	slices.SortFunc(hubs, func(a, b namedHub) int {
		return cmp.Or(cmp.Compare(b.grade, a.grade), cmp.Compare(a.id, b.id))
	})
	names := make([]string, len(hubs))
	for i, hub := range hubs {
		names[i] = string(hub.id) + " " + hub.text
	}
	f.warn("%s", fmt.Sprintf(format, args...)+": "+several(names)).todo(advice)
	f.putLastFirst()
}

// checkFlaps reports hubs that were disconnected too often.
func checkFlaps(ctx context.Context, v *visit, all []domain.Presence, f *findings) {
	online, since := 0, time.Now().Add(-hubWindow)
	var moved []domain.Presence // hubs whose presence changed within the window
	for _, hub := range all {
		if hub.Online {
			online++
		}
		if hub.Since.After(since) {
			moved = append(moved, hub)
		}
	}
	f.note("%d of the %d hubs that have ever connected are connected now", online, len(all))

	ctx, cancel := context.WithTimeout(ctx, flapsTimeout)
	defer cancel()
	found := make([]namedHub, len(moved))
	advice := "check each hub's network and power; if many hubs flap, check the cloud's network, " +
		"proxies that cut idle connections, and the limit of open files"
	var read atomic.Int64
	var group errgroup.Group
	group.SetLimit(concurrentLogs)
	for i, hub := range moved {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil // a partial result is good enough
			}
			ends, err := v.Disconnections(ctx, hub.HubID, since, maxEvents)
			if err != nil {
				return err
			}
			read.Add(1)
			if n := len(ends); n >= v.limits.Flaps {
				found[i] = namedHub{
					hub.HubID, n, fmt.Sprintf("%d times, last for %q", n, ends[n-1].Reason),
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		f.unknown("which of them flap is unknown: ", err)
		return
	}
	if n := int(read.Load()); n < len(moved) {
		f.note(
			"only %d of the %d logs of hubs that connected or disconnected within the hour were "+
				"read in time", n, len(moved),
		)
	}
	found = slices.DeleteFunc(found, func(hub namedHub) bool { return hub.grade == 0 })
	if len(found) == 0 {
		f.note("none was disconnected %d times within the hour", v.limits.Flaps)
		return
	}
	for _, hub := range found {
		if strings.Contains(hub.text, "duplicate client id") {
			advice = fmt.Sprintf(
				"two devices connect as %s with the same certificate: find the copy, and reset the "+
					"hub's link", hub.id,
			)
		}
	}
	f.nameHubs(found, advice, "%d hubs flap: disconnected within the hour were", len(found))
}

// checkHubLimits reports hubs that are reset, or issued certificates, so often that the service
// limits them.
func checkHubLimits(ctx context.Context, v *visit, f *findings) {
	since := time.Now().Add(-hubWindow)
	resets, certificates := map[domain.HubID]int{}, map[domain.HubID]int{}
	_, _, err := v.replay(ctx, maxFacts, factsTimeout, func(r directory.Recorded) {
		switch fact := r.Fact.(type) {
		case domain.HubLogBegun:
			if r.Event.At.After(since) {
				resets[fact.HubID]++
			}
		case domain.HubCertificateIssued:
			if r.Event.At.After(since) {
				certificates[fact.HubID]++
			}
		}
	})
	if err != nil {
		f.unknown("which of them are limited is unknown: ", err)
		return
	}
	var busy []namedHub
	add := func(id domain.HubID) {
		if most := max(resets[id], certificates[id]); most >= v.limits.HubFacts {
			busy = append(busy, namedHub{id, most, fmt.Sprintf(
				"(%d resets, %d certificates)", resets[id], certificates[id],
			)})
		}
	}
	for id := range resets {
		add(id)
	}
	for id := range certificates {
		if resets[id] == 0 {
			add(id)
		}
	}
	if len(busy) == 0 {
		return
	}
	f.nameHubs(
		busy, "replace a hub that loses its memory at each start; block a hub that may be stolen: "+
			"hubcloud inventory block SERIAL",
		"%d hubs are reset or enrol too often: within the hour", len(busy),
	)
}

// replay calls each with the directory's last most events, as far as they can be read in time. read
// is the sequence of the last event that was read, head the sequence of the last one.
func (v *visit) replay(
	ctx context.Context, most uint64, limit time.Duration, each func(directory.Recorded),
) (read, head uint64, err error) {
	if head, err = v.Directory.Head(ctx, 0); err != nil {
		return 0, 0, err
	}
	reading, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = v.Directory.Replay(
		reading, head-min(head, most), head, func(batch []directory.Recorded) error {
			for _, r := range batch {
				each(r)
				read = r.Seq
			}
			return nil
		},
	)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil // a partial result is good enough
	}
	return read, head, err
}

// checkHubFaults reports hubs that break the hub protocol, as the replicas that serve them noticed.
func checkHubFaults(ctx context.Context, v *visit, f *findings) {
	ctx, cancel := context.WithTimeout(ctx, faultsTimeout)
	defer cancel()
	faults, left, err := hubfaults.NewReader(v.Conns).All(ctx)
	if err != nil && !errors.Is(err, hubfaults.ErrNotServed) {
		f.unknown("which of them break the hub protocol is unknown: ", err)
	}
	if len(faults) == 0 {
		return
	}
	named, hubs := make([]namedHub, len(faults)), map[domain.HubID]bool{}
	for i, fault := range faults {
		hubs[fault.HubID] = true
		age := time.Since(fault.Since)
		named[i] = namedHub{fault.HubID, int(age / time.Second), fmt.Sprintf(
			"(%s for %s: %s)", fault.Reason, ago(age), fault.Detail,
		)}
	}
	f.nameHubs(
		named, "deploy/docs/hub-faults.md explains each reason; the protocol is at /link/. Restart "+
			"a hub that sends nothing; other hubs need a new firmware from their maker",
		"%d hubs break the hub protocol", len(hubs)+left,
	)
}

// checkHubCertificates reports hubs whose certificates have expired or expire soon.
func checkHubCertificates(ctx context.Context, v *visit, f *findings) {
	ends := map[domain.HubID]time.Time{}
	read, head, err := v.replay(
		ctx, ^uint64(0), certificatesTimeout, func(r directory.Recorded) {
			switch fact := r.Fact.(type) {
			case domain.HubCertificateIssued:
				ends[fact.HubID] = fact.ExpiresAt
			case domain.HubCertificateRevoked:
				delete(ends, fact.HubID)
			}
		},
	)
	if err != nil {
		f.unknown("the hubs' certificates are unknown: ", err)
		return
	}
	if read < head {
		f.note("only %d of the directory's %d events were read in time", read, head)
	}
	var ended, soon []string
	for hub, end := range ends {
		switch left := time.Until(end); {
		case left <= 0:
			ended = append(ended, string(hub))
		case left < v.limits.soon():
			soon = append(soon, string(hub))
		}
	}
	f.note("%d hubs have a certificate", len(ends))
	const advice = "a hub renews its certificate in its last month: this hub is offline or " +
		"cannot reach /link/v1/certificates. After the expiry it enrols again with its secret"
	for _, group := range []struct {
		what string
		hubs []string
	}{
		{fmt.Sprintf("expire within %d days", v.limits.CertificateDays), soon},
		{"have expired", ended},
	} {
		if slices.Sort(group.hubs); len(group.hubs) > 0 {
			f.warn(
				"the certificates of %d hubs %s: %s", len(group.hubs), group.what, several(group.hubs),
			).todo(advice)
		}
	}
}
