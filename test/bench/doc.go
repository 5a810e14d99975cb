// Package bench measures the service against limits measured in the same run: what the service's
// components, NATS, net/http and PostgreSQL, achieve under the same load without the service.
// `make bench` prints the table; `make bench-logs` and `make bench-cluster` measure what takes
// longer. A plain `go test` only checks that some measurements run, with tiny sizes whose results
// mean nothing.
//
// # Method
//
//   - The service is the built binary with its default settings, except that rate limits are
//     lifted. The limit is a server in its own process too: this test binary, started as a bare
//     NATS server, a bare net/http server or a bare database client.
//   - Both sides are driven by the same client code on the same machine with the same bytes: the
//     frames, pages and stored messages for the limit are taken from the service, and its streams
//     have the service's configuration or are a copy of its directory.
//   - A row with a limit of one round has a fixed figure as its limit: what is required, whatever
//     the components achieve.
//   - With -bench.former the limit of single events, paced events and latency is another build of
//     the service, such as an earlier release. HUBCLOUD_TEST_BINARY names the service itself.
//   - Rounds of the two sides alternate. A figure is the median over the rounds; the table also has
//     the minimum and the maximum.
//   - The load generator shares the processors with both sides, so it is kept cheap: packets are
//     encoded once and patched, one thread reads all event streams with epoll, and pages are read
//     into one buffer.
//
// # Measurements
//
//   - single events: hubs that each have one event in flight, over MQTT and TLS: acknowledged
//     events, the CPU of an event, and what the process has written to the disk for it. Limit: a
//     bare broker that receives the same over MQTT and TLS, stores each event in the hub's own
//     stream, synced, and then sends the ack. So every event waits for its own sync.
//   - paced events: 500 hubs with an event a second each, from the hub's write to two readers of its
//     event stream. Limit: a bare broker as anybody could set it up: MQTT, TLS and QoS 1, the events
//     of all hubs in one stream that is synced every two minutes, and readers that subscribe to the
//     hubs' subjects in plain NATS. It promises less: an event that it has confirmed may be lost with
//     the power or stored twice, and its readers cannot continue where they were.
//   - slow disk: single events of 1,000 hubs with a build of the service in which a sync takes 5 ms
//     longer, one at a time.
//   - ingest: hubs send batches of events over MQTT and TLS, with a few messages unacknowledged.
//     The figure is the acknowledged events. Limit: in the bare broker's own process, as many
//     publishers send batches of the same size and depth to streams of the same kind, without TLS,
//     MQTT, decoding, checks, or a load generator.
//   - latency: from the hub's write to the event stream's reader, one event at a time. Limit: a
//     hub's round trip through the bare broker (publish, an answer in process) plus one synced
//     append of the same message.
//   - pages: 8 readers on kept-alive connections. Cold: every page of many logs, once, after a
//     restart. Limit: direct gets of the same pages in the bare broker's own process on a copy of
//     the directory. Newest: the newest 2,000 events of one log, repeatedly. Limit: a bare net/http
//     server that writes one of these pages from memory.
//   - fan-out: events to many event streams. The CPU of a delivery is the CPU of the server's
//     process, less the CPU of the same events without readers. Limit: a bare net/http server that
//     receives each frame over a socket and writes it to every reader. Latency counts from the
//     hub's write, so the limit is the bare server's latency plus the time in which the service
//     acknowledges such an event to its hub.
//   - beside a tap: readers of many hubs while `hubcloud tap` follows all of them. Limit: the same
//     readers of the same service, without the tap.
//   - resume: all readers connect at once, each with a cursor 100 events back, until the last one
//     has them. Limit: a bare net/http server that writes the 100 frames from memory in one write.
//   - feed: one event a second of each of 500 hubs to 200 readers of the organization's feed. The
//     CPU of a delivery is measured as for fan-out, with the same limit.
//   - feed resume: 100 readers of the organization's feed connect at once, each with a position
//     10,000 events of 500 hubs back, until the last one has them: after a restart of the service,
//     when nothing is in its memory, and then again. Limit: a bare net/http server that writes the
//     frames from memory in one write.
//   - hub memory: the growth of the process for each idle connected hub, with its log. Limit: a
//     stream with one message and an idle MQTT connection with its own certificate on the bare
//     broker.
//   - reader memory: the growth for each idle event stream. Limit: the bare net/http server.
//   - feed memory: the growth for one reader of the organization's feed of 1,000 hubs that has got
//     an event of each, after a start. Limit: the growth of the service for 1,000 event streams,
//     one of each hub, that have got the same events. Both are less the growth with the same events
//     without a reader.
//   - states: 2,000 hubs report the values of nine devices each, a message of ten events a second:
//     how long GET /v1/state is behind, and the time until acks. Limit of the acks: the same load
//     while the projection of states is stopped (`hubcloud projections stop devices`).
//   - fairness: how long the operations of one organization take while another one attacks what all
//     share, in twelve ways, each for -bench.attack (-bench.attacks chooses some), and 30 s after it.
//     Limit during the attack: twice the time without it, and what a process adds that asks for nothing
//     and uses as much of the processors as the attacker, the service and its database did for the
//     attack. Limit afterwards: twice the time before.
//   - start: from the start of the process until it is ready, with 5,000 hub logs. Limit: the bare
//     broker on a copy of the same directory.
//   - rebuild: `hubcloud projections rebuild` of a directory of 200,000 events, beside the read
//     models in use. Limit: a COPY of the same rows from memory, in the same database.
//   - cluster: three nats-servers with three copies and two replicas of the service, all on this
//     machine: single events of 2,000 hubs, and what a server uses while they are idle. Limit of the
//     events: three bare brokers as in paced events, with three copies.
//   - logs (`make bench-logs`): the service with 100,000 hub logs.
//   - large cluster (`make bench-cluster`): three servers with 20,000 hub logs, their start, and
//     the loss of one.
//
// TestCompare (`make compare`) is not a measurement with a limit: it puts the service beside servers
// of other projects, each built by compare/install.sh, and a bare net/http server.
//
// # Memory and CPU
//
// Memory is the resident size of the process after a garbage collection, less what the Go runtime
// holds free: the runtime returns free memory to the system only slowly. CPU is the scheduler's sum
// over the process's threads. Both cover one process; the processes of the private database are not
// counted.
package bench
