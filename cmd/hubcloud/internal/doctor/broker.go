package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// checkBroker checks the broker's servers, their storage limits, and in a cluster the copies of
// streams.
func checkBroker(ctx context.Context, v *visit, f *findings) {
	judgeBroker(ctx, v.survey, v.limits, v.LogReplicas, f)
}

// checkBrokerAlone checks an external broker while no service answers. An embedded one runs in the
// service's process.
func checkBrokerAlone(ctx context.Context, t *target, err error, f *findings) {
	if t.embedsBroker() {
		notAsked(ctx, t, err, f)
		return
	}
	if t.CredentialsErr != nil {
		notAsked(ctx, t, t.CredentialsErr, f)
		return
	}
	if _, err := t.conns(); err != nil {
		advice := "check whether its process runs and whether a firewall blocks the connection"
		if errors.Is(err, nats.ErrAuthorization) {
			advice = "the credentials file is of another broker: name the right one with " +
				"--nats-credentials"
		}
		f.wrong("cannot be reached at %s: %v", t.Credentials.URL, err).todo(advice)
		return
	}
	replicas := 0
	if t.Started != nil {
		replicas = t.Started.LogReplicas
	}
	judgeBroker(ctx, t.survey, t.Limits, replicas, f)
}

// judgeBroker reports what the servers of the broker say. replicas is the number of copies that
// each stream should have; 0 if unknown.
func judgeBroker(ctx context.Context, s survey, limits Limits, replicas int, f *findings) {
	servers, err := s.servers()
	if err != nil {
		f.unclear("%v", err).todo(
			"see the broker's log: it accepts connections, but its system account does not answer",
		)
		return
	}
	var versions []string
	for _, server := range servers {
		if !slices.Contains(versions, server.Server.Version) {
			versions = append(versions, server.Server.Version)
		}
	}
	f.note("nats-server %s, %s", strings.Join(versions, ", "), serversFor(servers))
	if len(versions) > 1 {
		f.warn("its servers have different versions").todo(
			"finish the upgrade: run the same nats-server everywhere",
		)
	}
	for _, server := range servers {
		if server.Stats.JetStream != nil {
			judgeStorage(limits, server, f)
		}
		if slow := server.Stats.SlowConsumers; slow > 0 {
			f.note("%s has cut %d slow connections since it started", server.Server.Name, slow)
		}
	}
	if servers[0].Server.Cluster != "" {
		checkCluster(ctx, s, replicas, servers, f)
	}
}

// serversFor describes how long the servers have been up.
func serversFor(servers []serverInfo) string {
	if len(servers) == 1 && servers[0].Server.Cluster == "" {
		return "up for " + ago(time.Since(servers[0].Stats.Start))
	}
	parts := make([]string, 0, len(servers))
	for _, s := range servers {
		parts = append(parts, fmt.Sprintf("%s up for %s", s.Server.Name, ago(time.Since(s.Stats.Start))))
	}
	return strings.Join(parts, ", ")
}

// judgeStorage compares the storage of a server with its limit.
func judgeStorage(limits Limits, s serverInfo, f *findings) {
	used, limit := int64(s.Stats.JetStream.Stats.Store), s.Stats.JetStream.Config.MaxStore
	if limit <= 0 {
		f.note("%s stores %s, without a limit", s.Server.Name, Size(used))
		return
	}
	part := 100 * float64(used) / float64(limit)
	f.grade(
		verdictOf(part >= limits.StorageUsed, part >= 0.8*limits.StorageUsed),
		"beyond the limit, hub events and changes are rejected: enlarge the broker's disk and "+
			"start the broker again, or shorten --event-retention",
		"%s stores %s of the %s allowed (%.0f %%)", s.Server.Name, Size(used), Size(limit), part,
	)
}

// checkCluster checks a cluster for missing servers, its leader, and incomplete copies.
func checkCluster(
	ctx context.Context, s survey, replicas int, servers []serverInfo, f *findings,
) {
	var meta *server.MetaClusterInfo
	for _, s := range servers {
		if store := s.Stats.JetStream; store != nil && store.Meta != nil &&
			(meta == nil || len(store.Meta.Replicas) > len(meta.Replicas)) {
			meta = store.Meta
		}
	}
	switch {
	case meta == nil:
		f.wrong("no server stores streams").todo(
			"configure the servers with jetstream, as `hubcloud broker-config` prints it",
		)
		return
	case meta.Leader == "":
		f.wrong("no server leads the cluster: nothing can be stored").todo(
			"start servers until more than half of them run",
		)
	default:
		f.note("%s leads the cluster", meta.Leader)
	}
	if len(servers) < meta.Size {
		f.wrong(
			"%d of the cluster's %d servers answer%s",
			len(servers), meta.Size, absent(servers, meta),
		).todo(
			"start the missing servers, or remove them permanently: nats server cluster " +
				"peer-remove",
		)
	}
	conns, err := s.conns()
	if err != nil {
		return // there are no servers then
	}
	problems, err := readProblems(ctx, conns.Sys, len(servers))
	if err != nil {
		f.unknown("", err)
	}
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		lines := problems[name]
		f.wrong("%s reports: %s", name, strings.TrimSuffix(several(lines), ".")).todo(
			"wait if the server was just started; otherwise see its log",
		)
	}
	judgeCopies(s, replicas, f)
}

// absent names the missing servers.
func absent(servers []serverInfo, meta *server.MetaClusterInfo) string {
	var names []string
	for _, peer := range meta.Replicas {
		if peer.Offline &&
			!slices.ContainsFunc(
				servers, func(s serverInfo) bool { return s.Server.Name == peer.Name },
			) {
			names = append(names, peer.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; missing: " + strings.Join(names, ", ")
}

// judgeCopies checks whether the streams other than hub logs have a leader and all their copies.
func judgeCopies(survey survey, replicas int, f *findings) {
	all, err := survey.cloud()
	if err != nil {
		f.unknown("", err)
		return
	}
	var leaderless, behind, few []string
	lags := func(peer *jetstream.PeerInfo) bool { return peer.Offline || !peer.Current }
	for _, s := range all {
		switch {
		case s.Cluster == nil || s.Cluster.Leader == "":
			leaderless = append(leaderless, s.Config.Name)
		case slices.ContainsFunc(s.Cluster.Replicas, lags):
			behind = append(behind, s.Config.Name)
		}
		if s.Config.Replicas < replicas {
			few = append(few, s.Config.Name)
		}
	}
	if len(leaderless) > 0 {
		f.wrong("no leader: %s", several(leaderless)).todo(
			"start the servers that have their copies",
		)
	}
	if len(behind) > 0 {
		f.warn("missing or incomplete copies: %s", several(behind)).todo(
			"start missing servers; copies catch up by themselves",
		)
	}
	if len(few) > 0 {
		f.warn("fewer copies than --log-replicas %d: %s", replicas, several(few)).todo(
			"start as many servers as copies, then start the service again: it adds the copies",
		)
	}
}
