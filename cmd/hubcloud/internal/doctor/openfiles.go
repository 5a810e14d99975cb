package doctor

import (
	"context"

	"hubcloud/streams/broker"
)

// checkOpenFiles compares the service's limit of open files with its need: each hub log that is
// written to needs one, and each connection.
func checkOpenFiles(_ context.Context, v *visit, f *findings) {
	f.note("%.0f are open", v.sum("process_open_fds"))
	need := v.limits.OpenFiles
	if v.ExternalBroker {
		f.note("the hub logs are on another machine")
	} else {
		hubs, err := v.countHubLogs()
		if err != nil {
			f.unknown("the number of hub logs is unknown: ", err)
			return
		}
		f.note("%d hub logs", hubs)
		need = max(need, broker.OpenFilesNeeded(hubs))
	}
	own := uint64(v.Connections)
	if !v.ExternalBroker {
		own += uint64(v.HubConnections)
	}
	f.note(
		"at most %d are for connections of API clients and %d for connections of hubs", v.Connections,
		v.HubConnections,
	)
	if own+broker.OwnFiles > v.OpenFiles {
		f.warn(
			"connections may use %d of %d files: too few remain for hub logs and the process "+
				"itself", own, v.OpenFiles,
		).todo("lower --connections, or use its default")
	}
	f.grade(
		verdictIf(v.OpenFiles < need, Wrong),
		"raise the limit (LimitNOFILE of the unit, ulimit -n, the container's ulimits) and start "+
			"the service again: otherwise hubs cannot connect and their logs cannot be written",
		"the service may open %d files and needs %d", v.OpenFiles, need,
	)
	f.putLastFirst()
}

// countHubLogs returns the number of hub logs, or of all streams when the list of logs is
// incomplete.
func (v *visit) countHubLogs() (int, error) {
	list, err := v.hubLogs()
	if err != nil || list.complete {
		return len(list.logs), err
	}
	accounts, err := v.accounts()
	all := 0
	for _, a := range accounts {
		all += a.Streams
	}
	return all, err
}
