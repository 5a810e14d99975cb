package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/hubfaults"
)

// hubFaultsTimeout bounds the questions to the replicas that serve hubs.
const hubFaultsTimeout = time.Second

// checkHubFaults reports hubs that break the hub protocol, as the replicas that serve them noticed.
func checkHubFaults(ctx context.Context, t *target, f *findings) {
	conns, err := t.broker()
	if err != nil {
		return // the component broker reports that
	}
	ctx, cancel := context.WithTimeout(ctx, hubFaultsTimeout)
	defer cancel()
	faults, left, err := hubfaults.NewReader(conns).All(ctx)
	if err != nil && !errors.Is(err, hubfaults.ErrNotServed) {
		f.unknown("which of them break the hub protocol is unknown: ", err)
	}
	if len(faults) == 0 {
		return
	}
	slices.SortFunc(faults, func(a, b hubfaults.Fault) int { return a.Since.Compare(b.Since) })
	names, hubs := make([]string, len(faults)), map[domain.HubID]bool{}
	for i, fault := range faults {
		hubs[fault.HubID] = true
		names[i] = fmt.Sprintf(
			"%s (%s for %s: %s)", fault.HubID, fault.Reason, ago(time.Since(fault.Since)),
			fault.Detail,
		)
	}
	f.add(
		Warning,
		fmt.Sprintf("%d hubs break the hub protocol: %s", len(hubs)+left, several(names)),
		"deploy/docs/hub-faults.md explains each reason; the protocol is at /link/. Restart a hub "+
			"that sends nothing; other hubs need a new firmware from their maker",
	)
	f.putLastFirst()
}
