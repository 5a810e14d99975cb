package portal

import (
	"context"

	"hubcloud/domain"
)

const (
	// maxExport is the most events of an export.
	maxExport = 100_000
	// exportScan is about how many events exportLog reads in search of those that a filter selects.
	exportScan = 1_000_000
)

// exportLog calls use with the selected events of a hub's log, newest first, until it returns an
// error. complete is false if the log has older events that may be selected: an export has at most
// maxExport events. Its memory does not depend on the number of events.
func (p *Portal) exportLog(
	ctx context.Context, hub domain.HubID, request logRequest, use func(logEntry) error,
) (complete bool, err error) {
	var expired bool
	more, err := p.place(ctx, hub, &request, &expired)
	if err != nil || !more {
		return !more, err
	}
	exported, failed := 0, error(nil)
	older, err := p.eachBefore(ctx, hub, request, exportScan, func(entry logEntry) bool {
		failed = use(entry)
		exported++
		return failed == nil && exported < maxExport
	})
	if err == nil {
		err = failed
	}
	return older == "", err
}
