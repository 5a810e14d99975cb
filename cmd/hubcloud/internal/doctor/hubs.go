package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/directory"
)

const (
	// hubWindow is the time for which disconnections, resets and certificates are counted.
	hubWindow = time.Hour
	// flapsTimeout bounds the read of the hub logs, of which concurrentLogs are read at once, and
	// maxEnds disconnections of each.
	flapsTimeout   = 2 * time.Second
	concurrentLogs = 16
	maxEnds        = 500
	// factsTimeout bounds the read of the directory. The newest recentFacts events are read first: a
	// large directory is read only in part.
	factsTimeout = 2500 * time.Millisecond
	recentFacts  = 50_000
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
	checkHubLimits(v, f)
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
			ends, err := v.Disconnections(ctx, hub.HubID, since, maxEnds)
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

// hubFacts is what the directory has of its hubs.
type hubFacts struct {
	// ends are the ends of the certificates in force.
	ends map[domain.HubID]time.Time
	// resets and issued count the resets of a hub, and the certificates issued to it, in hubWindow.
	resets, issued map[domain.HubID]int
	// read is how many of the events of the directory were read in time.
	read, events uint64
}

// readHubFacts reads the directory, the newest events first.
func readHubFacts(
	ctx context.Context, log *directory.Log, newest uint64,
) (facts hubFacts, err error) {
	if facts.events, err = log.Head(ctx, 0); err != nil {
		return facts, err
	}
	facts.resets, facts.issued = map[domain.HubID]int{}, map[domain.HubID]int{}
	reading, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	since := time.Now().Add(-hubWindow)
	begin := facts.events - min(facts.events, newest)
	// The zero time stands for a revoked certificate.
	newer, older := map[domain.HubID]time.Time{}, map[domain.HubID]time.Time{}
	read := func(after, last uint64, ends map[domain.HubID]time.Time) error {
		return log.Replay(reading, after, last, func(batch []directory.Recorded) error {
			for _, r := range batch {
				recent := r.Event.At.After(since)
				switch fact := r.Fact.(type) {
				case domain.HubLogBegun:
					if recent {
						facts.resets[fact.HubID]++
					}
				case domain.HubCertificateIssued:
					ends[fact.HubID] = fact.ExpiresAt
					if recent {
						facts.issued[fact.HubID]++
					}
				case domain.HubCertificateRevoked:
					ends[fact.HubID] = time.Time{}
				case domain.HubSecretRotated:
					if !fact.KeepCertificate {
						ends[fact.HubID] = time.Time{}
					}
				}
			}
			facts.read += uint64(len(batch))
			return nil
		})
	}
	if err = read(begin, facts.events, newer); err == nil {
		err = read(0, begin, older)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil // a partial result is good enough
	}
	maps.Copy(older, newer)
	maps.DeleteFunc(older, func(_ domain.HubID, end time.Time) bool { return end.IsZero() })
	facts.ends = older
	return facts, err
}

// checkHubLimits reports hubs that are reset, or issued certificates, so often that the service
// limits them.
func checkHubLimits(v *visit, f *findings) {
	facts, err := v.hubFacts()
	if err != nil {
		f.unknown("which of them are limited is unknown: ", err)
		return
	}
	most := maps.Clone(facts.issued)
	for id, resets := range facts.resets {
		most[id] = max(most[id], resets)
	}
	var busy []namedHub
	for id, n := range most {
		if n >= v.limits.HubFacts {
			busy = append(busy, namedHub{id, n, fmt.Sprintf(
				"(%d resets, %d certificates)", facts.resets[id], facts.issued[id],
			)})
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

// checkHubFaults reports hubs that break the hub protocol, as the replicas that serve them noticed.
func checkHubFaults(ctx context.Context, v *visit, f *findings) {
	ctx, cancel := context.WithTimeout(ctx, faultsTimeout)
	defer cancel()
	faults, left, err := ingest.NewFaultReader(v.Conns).All(ctx)
	if err != nil && !errors.Is(err, ingest.ErrNotServed) {
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
func checkHubCertificates(_ context.Context, v *visit, f *findings) {
	facts, err := v.hubFacts()
	if err != nil {
		f.unknown("the hubs' certificates are unknown: ", err)
		return
	}
	if facts.read < facts.events {
		f.note("only %d of the directory's %d events were read in time", facts.read, facts.events)
	}
	var ended, soon []string
	for hub, end := range facts.ends {
		switch left := time.Until(end); {
		case left <= 0:
			ended = append(ended, string(hub))
		case left < v.limits.soon():
			soon = append(soon, string(hub))
		}
	}
	f.note("%d hubs have a certificate", len(facts.ends))
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
