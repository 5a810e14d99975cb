package doctor

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"hubcloud/streams/broker"
)

// checkOpenFiles compares how many files the service may have open with what the hubs need: a log
// that is written to is one, a connection another.
func checkOpenFiles(_ context.Context, p *patient, f *findings) {
	if p.DataDir == "" {
		f.add(Skipped, "there is no service on this machine to look at", "")
		return
	}
	limit, who, err := filesLimit(p)
	if err != nil {
		f.add(Unknown, fmt.Sprintf("the limit is not known: %v", err), "see the component service")
		return
	}
	if families, err := p.metrics(); err == nil {
		if open, ok := gauge(families, "process_open_fds"); ok {
			f.note("%.0f are open", open)
		}
	}
	need := p.Limits.OpenFiles
	if p.Started != nil && p.Started.OwnBroker {
		f.note("the hub logs are another machine's")
	} else {
		hubs, err := countHubLogs(p)
		if err != nil {
			f.add(Unknown, fmt.Sprintf("the number of hub logs is not known: %v", err), "see the component broker")
			return
		}
		need = max(need, broker.OpenFilesNeeded(hubs))
		f.note("%d hub logs", hubs)
	}
	if s := p.Started; s != nil && s.Connections > 0 {
		own := uint64(s.Connections)
		if !s.OwnBroker {
			own += uint64(s.HubConnections)
		}
		f.note(
			"%d are for connections of API clients and %d for those of hubs at most", s.Connections,
			s.HubConnections,
		)
		if own+broker.OwnFiles > limit {
			f.add(
				Warning,
				fmt.Sprintf(
					"connections may take %d of %d files, which leaves too few for logs and the process itself",
					own, limit,
				),
				"lower --connections and --broker-connections, or leave them to the service",
			)
		}
	}
	found := fmt.Sprintf("%s may open %d files and needs %d", who, limit, need)
	if limit < need {
		f.add(
			Wrong,
			found,
			"raise the limit (LimitNOFILE of the unit, ulimit -n, the container's ulimits) and "+
				"start the service again: without it "+
				"hubs cannot connect, and their logs cannot be written",
		)
	} else {
		f.note("%s", found)
	}
	f.lead()
}

// filesLimit asks the running service. Without one it is what a service started from here would
// have.
func filesLimit(p *patient) (limit uint64, who string, err error) {
	families, err := p.metrics()
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
	return own.Cur, "a service that is started from here", nil
}

// countHubLogs asks the broker, and looks at its disk while nothing runs. Of very many some may not
// have been counted in time; then it is as many as there are streams.
func countHubLogs(p *patient) (int, error) {
	list, err := p.hubLogs()
	if err != nil {
		return broker.HubLogs(p.DataDir)
	}
	if list.complete {
		return len(list.logs), nil
	}
	accounts, err := p.accounts()
	if err != nil {
		return 0, err
	}
	all := 0
	for _, a := range accounts {
		all += int(a.Streams)
	}
	return all, nil
}
