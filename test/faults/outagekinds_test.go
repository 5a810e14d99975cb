package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

// stopNode stops a server's process (SIGSTOP) for a time.
func (o *outages) stopNode(what string, node int, lasts time.Duration) outage {
	n := o.broker.Nodes[node]
	return outage{
		name: fmt.Sprintf("%s is stopped (%s)", what, n.Name), lasts: lasts, routes: true,
		begin: func() { n.Signal(syscall.SIGSTOP) }, end: func() { n.Signal(syscall.SIGCONT) },
	}
}

// stopReplica stops a replica's process for a time.
func (o *outages) stopReplica(replica int, lasts time.Duration) outage {
	return outage{
		name: fmt.Sprintf("replica %d is stopped", replica), lasts: lasts,
		begin: func() { o.replicas[replica].Signal(syscall.SIGSTOP) },
		end:   func() { o.replicas[replica].Signal(syscall.SIGCONT) },
	}
}

// stopPostgres stops the database's processes for a time.
func (o *outages) stopPostgres(lasts time.Duration) outage {
	return outage{
		name: "the database is stopped", lasts: lasts,
		begin: func() { o.postgres.signal(syscall.SIGSTOP) },
		end:   func() { o.postgres.signal(syscall.SIGCONT) },
	}
}

// killPostgres kills the database and restarts it.
func (o *outages) killPostgres(lasts time.Duration) outage {
	return outage{
		name:  "the database is killed",
		lasts: lasts,
		begin: o.postgres.kill,
		end:   o.postgres.start,
	}
}

// wipe kills a server and restarts it with an empty disk.
func (o *outages) wipe(node int, lasts time.Duration) outage {
	n := o.broker.Nodes[node]
	return outage{
		name:  fmt.Sprintf("a broker loses its disk (%s)", n.Name),
		lasts: lasts,
		begin: n.Kill,
		end: func() {
			o.removeAll(n.Store)
			n.Start()
		},
	}
}

// removeAll removes everything in a folder. The folder stays, because it may be a file system.
func (o *outages) removeAll(dir string) {
	o.t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		o.t.Error(err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			o.t.Error(err)
		}
	}
}

// fillDisk fills the disk of the server that has a small one. Once there is space, the server is
// restarted, as the handbook says: it keeps the write errors of its streams.
func (o *outages) fillDisk(lasts time.Duration) outage {
	n := o.broker.Nodes[smallDisk]
	var empty func()
	return outage{
		name:  fmt.Sprintf("the disk of a broker is full (%s)", n.Name),
		lasts: lasts, routes: true,
		begin: func() { empty = streamstest.FillDisk(o.t, n.Store) },
		end: func() {
			empty()
			n.Kill()
			n.Start()
		},
	}
}

// viewServer returns the number of the server that has the log of a hub: its view of the journal
// has one copy.
func (o *outages) viewServer(hub string) int {
	o.t.Helper()
	server := -1
	streamstest.Eventually(o.t, "a server has the log of "+hub, func() bool {
		for i, node := range o.broker.Nodes {
			folders, err := filepath.Glob(filepath.Join(
				node.Store, "jetstream", "*", "streams", streams.HubStream(domain.HubID(hub)), "msgs",
			))
			if err == nil && len(folders) > 0 {
				server = i
			}
		}
		return server >= 0
	})
	return server
}

// damageViews kills the server that has the log of the first hub, damages every hub log that it
// has, and restarts it.
func (o *outages) damageViews(lasts time.Duration) outage {
	var n *natscluster.Node
	return outage{
		name:  "hub logs of a broker are damaged while it is stopped",
		lasts: lasts, routes: true,
		begin: func() {
			n = o.broker.Nodes[o.viewServer(o.traffic.hubs[0].hub.ID)]
			n.Kill()
			for _, h := range o.traffic.hubs {
				damageView(o.t, filepath.Join(n.Store, "jetstream"), h.hub.ID, -1)
			}
		},
		end: func() { n.Start() },
	}
}

// slowViews stops the server that has the log of the first hub again and again for most of the
// time.
func (o *outages) slowViews(lasts time.Duration) outage {
	stop, stopped := make(chan struct{}), make(chan struct{})
	return outage{
		name:  "a broker that has hub logs is slow",
		lasts: lasts, routes: true,
		begin: func() {
			n := o.broker.Nodes[o.viewServer(o.traffic.hubs[0].hub.ID)]
			go func() {
				defer close(stopped)
				for !isClosed(stop) {
					n.Signal(syscall.SIGSTOP)
					pause(stop, 400*time.Millisecond)
					n.Signal(syscall.SIGCONT)
					pause(stop, 50*time.Millisecond)
				}
			}()
		},
		end: func() {
			close(stop)
			<-stopped
		},
	}
}

// isolate cuts a place from all others.
func (o *outages) isolate(what string, place *namespace, lasts time.Duration) outage {
	var pairs [][2]*namespace
	for _, other := range append(append([]*namespace{o.database}, o.nodes...), o.machines...) {
		if other != place {
			pairs = append(pairs, [2]*namespace{place, other})
		}
	}
	isolated := o.cut(what+" and all others", pairs, lasts)
	isolated.routes = true
	return isolated
}

// cutBrokers cuts two brokers from each other.
func (o *outages) cutBrokers(a, b *namespace, lasts time.Duration) outage {
	cut := o.cut("two brokers", [][2]*namespace{{a, b}}, lasts)
	cut.routes = true
	return cut
}

// cutOff cuts a replica from every broker. The replica must end its streams, so that their readers
// reconnect elsewhere.
func (o *outages) cutOff(replica int, lasts time.Duration) outage {
	var pairs [][2]*namespace
	for _, node := range o.nodes {
		pairs = append(pairs, [2]*namespace{o.machines[replica], node})
	}
	cut := o.cut("a replica and every broker", pairs, lasts)
	begin := cut.begin
	cut.begin = func() {
		hub := o.traffic.hubs[0].hub.ID
		stream := harness.OpenStream(o.t, o.clients[replica], hub, o.clients[replica].Head(hub))
		begin()
		began := time.Now()
		select {
		case <-stream.Ended:
			o.t.Logf(
				"the replica ended a stream %s after it was cut off",
				time.Since(began).Round(time.Millisecond),
			)
		case <-time.After(streamEnd):
			o.t.Errorf("stream of a cut-off replica: still open after %s", streamEnd)
		}
		stream.Close()
	}
	return cut
}

// streamEnd is how long a stream may stay open on a replica without a broker. The promise for an
// idle machine is three seconds.
const streamEnd = 30 * time.Second

// cut cuts pairs of places from each other.
func (o *outages) cut(what string, pairs [][2]*namespace, lasts time.Duration) outage {
	var names []string
	for _, pair := range pairs {
		names = append(names, pair[0].Address+"-"+pair[1].Address)
	}
	return outage{
		name: fmt.Sprintf(
			"the network between %s is cut (%s)", what, strings.Join(names, ", "),
		), lasts: lasts,
		begin: func() {
			for _, pair := range pairs {
				o.net.cut(pair[0], pair[1])
			}
		},
		end: func() {
			for _, pair := range pairs {
				o.net.mend(pair[0], pair[1])
			}
		},
	}
}

// leader returns the number of the server that leads a stream of the account CLOUD.
func (o *outages) leader(stream string) int {
	o.t.Helper()
	leader := -1
	streamstest.Eventually(o.t, stream+" has a leader", func() bool {
		var answer struct {
			Accounts []struct {
				Streams []struct {
					Name    string
					Cluster struct{ Leader string }
				} `json:"stream_detail"`
			} `json:"account_details"`
		}
		if !o.broker.Nodes[0].Get("/jsz?acc=CLOUD&streams=true", &answer) {
			return false
		}
		for _, account := range answer.Accounts {
			for _, s := range account.Streams {
				if _, err := fmt.Sscanf(s.Cluster.Leader, "node-%d", &leader); err == nil &&
					s.Name == stream {
					return true
				}
			}
		}
		return false
	})
	return leader
}
