package live

import (
	"context"

	"hubcloud/domain"
)

const (
	// MaxExport is the most events of an export.
	MaxExport = 100_000
	// exportScan is about how many events ExportLog reads in search of those that a filter selects.
	exportScan = 1_000_000
)

// ExportLog calls use with the selected events of a hub's log, newest first, until it returns an
// error. complete is false if the log has older events that may be selected: an export has at most
// MaxExport events. Its memory does not depend on the number of events.
func (l *Live) ExportLog(
	ctx context.Context, hub domain.HubID, request LogRequest, use func(LogEntry) error,
) (complete bool, err error) {
	var expired bool
	more, err := l.place(ctx, hub, &request, &expired)
	if err != nil || !more {
		return !more, err
	}
	exported, failed := 0, error(nil)
	older, err := l.eachBefore(ctx, hub, request, exportScan, func(entry LogEntry) bool {
		failed = use(entry)
		exported++
		return failed == nil && exported < MaxExport
	})
	if err == nil {
		err = failed
	}
	return older == "", err
}
