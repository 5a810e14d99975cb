package doctor

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"hubcloud/streams/broker"
)

// checkOpenFiles compares the service's limit of open files with its need: each hub log that is
// written to needs one, and each connection.
func checkOpenFiles(_ context.Context, t *target, f *findings) {
	if t.DataDir == "" {
		f.add(Skipped, "no service is known on this machine", "")
		return
	}
	limit, who, err := filesLimit(t)
	if err != nil {
		f.add(Unknown, fmt.Sprintf("the limit is unknown: %v", err), "see the component service")
		return
	}
	if families, err := t.metrics(); err == nil {
		if open, ok := gauge(families, "process_open_fds"); ok {
			f.note("%.0f are open", open)
		}
	}
	need := t.Limits.OpenFiles
	if t.Started != nil && t.Started.ExternalBroker {
		f.note("the hub logs are on another machine")
	} else {
		hubs, err := countHubLogs(t)
		if err != nil {
			f.add(
				Unknown, fmt.Sprintf("the number of hub logs is unknown: %v", err),
				"see the component broker",
			)
			return
		}
		need = max(need, broker.OpenFilesNeeded(hubs))
		f.note("%d hub logs", hubs)
	}
	if s := t.Started; s != nil && s.Connections > 0 {
		own := uint64(s.Connections)
		if !s.ExternalBroker {
			own += uint64(s.HubConnections)
		}
		f.note(
			"at most %d are for connections of API clients and %d for those of hubs", s.Connections,
			s.HubConnections,
		)
		if own+broker.OwnFiles > limit {
			f.add(
				Warning,
				fmt.Sprintf(
					"connections may use %d of %d files: too few remain for hub logs and the "+
						"process itself",
					own, limit,
				),
				"lower --connections and --broker-connections, or use their defaults",
			)
		}
	}
	found := fmt.Sprintf("%s may open %d files and needs %d", who, limit, need)
	if limit < need {
		f.add(
			Wrong,
			found,
			"raise the limit (LimitNOFILE of the unit, ulimit -n, the container's ulimits) and "+
				"start the service again: otherwise hubs cannot connect and their logs cannot be "+
				"written",
		)
	} else {
		f.note("%s", found)
	}
	f.putLastFirst()
}

// filesLimit returns the limit of the running service or, when none runs, the limit of this
// process. who names the owner of the limit.
func filesLimit(t *target) (limit uint64, who string, err error) {
	families, err := t.metrics()
	if err == nil {
		if most, ok := gauge(families, "process_max_fds"); ok {
			return uint64(most), "the service", nil
		}
	} else if !errors.Is(err, errNoService) {
		return 0, "", err
	}
	var own syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &own); err != nil {
		return 0, "", err
	}
	return own.Cur, "a service started from here", nil
}

// countHubLogs returns the number of hub logs: from the broker, or from its disk while it does not
// run. When the list of logs is incomplete, it returns the number of all streams.
func countHubLogs(t *target) (int, error) {
	list, err := t.hubLogs()
	if err != nil {
		return broker.HubLogs(t.DataDir)
	}
	if list.complete {
		return len(list.logs), nil
	}
	accounts, err := t.accounts()
	if err != nil {
		return 0, err
	}
	all := 0
	for _, a := range accounts {
		all += int(a.Streams)
	}
	return all, nil
}
