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
//     NATS server or a bare net/http server.
//   - Both sides are driven by the same client code on the same machine with the same bytes: the
//     frames for the limit are taken from the service.
//   - A row with a limit of one round has a fixed figure as its limit: what is required, whatever
//     the components achieve.
//   - Rounds of the two sides alternate. A figure is the median over the rounds; the table also has
//     the minimum and the maximum.
//   - The load generator shares the processors with both sides, so it is kept cheap: packets are
//     encoded once and patched, and one thread reads all event streams with epoll.
//
// # Measurements
//
//   - single events: hubs that each have one event in flight, over MQTT and TLS: acknowledged
//     events, and the CPU of an event. Limit: the bare broker of paced events.
//   - paced events: 500 hubs with an event a second each, from the hub's write to two readers of its
//     event stream. Limit: a bare broker as anybody could set it up: MQTT, TLS and QoS 1, the events
//     of all hubs in one stream that is synced every two minutes, and readers that subscribe to the
//     hubs' subjects in plain NATS. It promises less: an event that it has confirmed may be lost with
//     the power or stored twice, and its readers cannot continue where they were.
//   - feed: one event a second of each of 500 hubs to 200 readers of the organization's feed. The
//     CPU of a delivery is the CPU of the server's process, less the CPU of the same events without
//     readers. Limit: a bare net/http server that receives each frame over a socket and writes it
//     to every reader.
//   - hub memory: the growth of the process for each idle connected hub, with its log. The limit
//     is a fixed figure.
//   - reader memory: the growth for each idle event stream. Limit: the bare net/http server.
//   - calls: a live call and a command, from the API's client to the hub and back. Limit: a round
//     trip from the bare broker's process to the hub.
//   - states: 2,000 hubs report the values of nine devices each, a message of ten events a second:
//     how long GET /v1/state is behind, and the time until acks. Limit of the acks: the same load
//     while the projection of states is stopped (`hubcloud projections stop devices`).
//   - fairness: how long the operations of one organization take while another one attacks what all
//     share, in twelve ways, each for -bench.attack (-bench.attacks chooses some), and 30 s after it.
//     Limit during the attack: twice the time without it, and what a process adds that asks for nothing
//     and uses as much of the processors as the attacker, the service and its database did for the
//     attack. Limit afterwards: twice the time before.
//   - cluster: three nats-servers with three copies and two replicas of the service, all on this
//     machine: single events of 2,000 hubs, and what a server uses while they are idle. Limit of the
//     events: three bare brokers as in paced events, with three copies.
//   - logs (`make bench-logs`): the service with 100,000 hub logs.
//   - large cluster (`make bench-cluster`): three servers with 20,000 hub logs, their start, and
//     the loss of one.
//
// # Memory and CPU
//
// Memory is the resident size of the process after a garbage collection, less what the Go runtime
// holds free: the runtime returns free memory to the system only slowly. CPU is the scheduler's sum
// over the process's threads. Both cover one process; the processes of the private database are not
// counted.
package bench
