package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/cmd/hubcloud/internal/doctor/survey"
	"hubcloud/streams"
)

// checkBroker says whether the broker's servers are there, what they may store, and whether their
// copies of streams are complete.
func checkBroker(ctx context.Context, p *patient, f *findings) {
	conns, err := p.broker()
	if err != nil {
		brokerAway(p, f, err)
		return
	}
	servers, err := p.servers()
	if err != nil {
		f.add(
			Unknown, err.Error(),
			"see the broker's log: it lets us in, and its system account does not answer",
		)
		return
	}
	var versions []string
	for _, s := range servers {
		if !slices.Contains(versions, s.Version) {
			versions = append(versions, s.Version)
		}
	}
	f.note(
		"nats-server %s at %s, %s", strings.Join(versions, ", "), conns.Cloud.ConnectedAddr(),
		serversFor(servers),
	)
	if len(versions) > 1 {
		f.add(
			Warning, "its servers are of different versions",
			"finish the upgrade: run the same nats-server everywhere",
		)
	}
	for _, s := range servers {
		if s.JetStream != nil {
			judgeStorage(p.Limits, s, f)
		}
		if s.SlowConsumers > 0 {
			f.note(
				"%s has cut off %d connections that did not read since it started", s.Name,
				s.SlowConsumers,
			)
		}
	}
	if servers[0].Cluster != "" {
		checkCluster(ctx, p, conns, servers, f)
	}
}

// brokerAway says why the broker cannot be reached, as far as that can be told.
func brokerAway(p *patient, f *findings, err error) {
	if p.CredentialsErr != nil {
		advice := "name the credentials file with --nats-credentials, or the service's --data-dir"
		switch {
		case errors.Is(err, fs.ErrPermission):
			advice = "ask as the user whom the service runs as: nobody else may read the broker's credentials"
		case p.DataDir != "" && !p.Elsewhere && !p.running():
			advice = "start the service: a private broker runs only while the service does"
		}
		f.add(Unknown, fmt.Sprintf("cannot be reached: %v", err), advice)
		return
	}
	advice := "see whether its process runs, and whether a firewall is in between"
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		advice = "the credentials file is not this broker's: name the right one with --nats-credentials"
	case !p.Elsewhere && p.Started != nil && !p.Started.OwnBroker:
		advice = "it is in the service's process: see the component service, and the service's log"
	}
	f.add(Wrong, fmt.Sprintf("cannot be reached at %s: %v", p.Credentials.URL, err), advice)
}

func serversFor(servers []survey.Server) string {
	if len(servers) == 1 && servers[0].Cluster == "" {
		return "up for " + ago(time.Since(servers[0].Started))
	}
	parts := make([]string, 0, len(servers))
	for _, s := range servers {
		parts = append(parts, fmt.Sprintf("%s up for %s", s.Name, ago(time.Since(s.Started))))
	}
	return strings.Join(parts, ", ")
}

// judgeStorage compares what a server stores with what it may.
func judgeStorage(limits Limits, s survey.Server, f *findings) {
	used, limit := s.JetStream.StorageBytes, s.JetStream.StorageLimit
	if limit <= 0 {
		f.note("%s stores %s, without a limit", s.Name, size(used))
		return
	}
	part := 100 * float64(used) / float64(limit)
	found := fmt.Sprintf(
		"%s stores %s of the %s that it may (%.0f %%)", s.Name, size(used), size(limit), part,
	)
	const advice = "what is beyond the limit is refused, of hubs and of management: give the " +
		"broker's disk more room and start it again, " +
		"or shorten --event-retention"
	switch {
	case part >= limits.Storage:
		f.add(Wrong, found, advice)
	case part >= 0.8*limits.Storage:
		f.add(Warning, found, advice)
	default:
		f.note("%s", found)
	}
}

// checkCluster looks at what only several servers have: who is missing, who leads, and whether
// copies are complete.
func checkCluster(
	ctx context.Context, p *patient, conns *streams.Conns, servers []survey.Server, f *findings,
) {
	var meta *survey.Meta
	for _, s := range servers {
		if s.JetStream != nil && s.JetStream.Meta != nil &&
			(meta == nil || len(s.JetStream.Meta.Peers) > len(meta.Peers)) {
			meta = s.JetStream.Meta
		}
	}
	switch {
	case meta == nil:
		f.add(
			Wrong, "no server keeps streams",
			"configure the servers as `hubcloud broker-config` prints it: with jetstream",
		)
		return
	case meta.Leader == "":
		f.add(
			Wrong, "no server leads the cluster: nothing can be stored",
			"bring back servers until more than half of them are there",
		)
	default:
		f.note("%s leads the cluster", meta.Leader)
	}
	if len(servers) < meta.Size {
		f.add(
			Wrong,
			fmt.Sprintf(
				"%d of the cluster's %d servers answer%s", len(servers), meta.Size,
				absent(servers, meta),
			),
			"start the servers that are missing, or remove their peers for good: nats server cluster peer-remove",
		)
	}
	ailments, err := survey.Ailments(ctx, conns.Sys, len(servers))
	if err != nil {
		f.untold("", err)
	}
	for _, name := range slices.Sorted(maps.Keys(ailments)) {
		lines := ailments[name]
		f.add(
			Wrong, fmt.Sprintf("%s says: %s", name, strings.TrimSuffix(several(lines), ".")),
			"wait for a server that has just been started; one that stays behind wants its log read",
		)
	}
	judgeCopies(p, f)
}

// absent names the servers that the leader does not see.
func absent(servers []survey.Server, meta *survey.Meta) string {
	var names []string
	for _, peer := range meta.Peers {
		if peer.Offline &&
			!slices.ContainsFunc(
				servers, func(s survey.Server) bool { return s.Name == peer.Name },
			) {
			names = append(names, peer.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; missing: " + strings.Join(names, ", ")
}

// judgeCopies looks whether the streams of the directory and of everything else that is no hub log
// have their leader and their copies.
func judgeCopies(p *patient, f *findings) {
	all, err := p.cloud()
	if err != nil {
		f.untold("", err)
		return
	}
	var headless, behind, few []string
	for _, s := range all {
		switch {
		case s.Leader == "":
			headless = append(headless, s.Name)
		case slices.ContainsFunc(s.Peers, func(peer survey.Peer) bool { return peer.Offline || !peer.Current }):
			behind = append(behind, s.Name)
		}
		if p.Started != nil && s.Replicas < p.Started.LogReplicas {
			few = append(few, s.Name)
		}
	}
	if len(headless) > 0 {
		f.add(
			Wrong, "no leader: "+several(headless),
			"bring back the servers that have copies of them",
		)
	}
	if len(behind) > 0 {
		f.add(
			Warning, "copies that are behind or away: "+several(behind),
			"see the server that is missing or has just come back; they catch up by themselves",
		)
	}
	if len(few) > 0 {
		f.add(
			Warning,
			fmt.Sprintf(
				"fewer copies than --log-replicas %d: %s", p.Started.LogReplicas, several(few),
			),
			"start the service again with as many servers as copies: it gives its streams what is asked",
		)
	}
}
