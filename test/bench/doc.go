// Package bench measures the service against limits that are measured in the same run: what the
// parts that it is made of can do when nothing of the service stands between them and the load.
// `make bench` prints the table; a plain `go test` only proves that every measurement still runs,
// on tiny numbers that mean nothing.
//
// # How it is made fair
//
//   - The service is the built binary with its default settings, but for the rate limits, which are
//     lifted. The limit is a server in a process of its own too: this test binary, started again as
//     a bare NATS server or as a bare net/http server.
//   - Both sides are driven by the same client code on the same machine with the same bytes:
//     frames, pages and stored messages for the limit are taken from the service, streams are made
//     with the configuration that the service's own streams have, or are a copy of its directory.
//   - Rounds of the two alternate. A figure is the median over the rounds, and the table gives the
//     lowest and the highest beside it.
//   - The load generator shares the processors with both. It is kept cheap: packets that are made
//     once and patched, event streams read by one thread with epoll, pages read into one buffer.
//
// # What is compared
//
//   - ingest: hubs send batches of events over MQTT and TLS, with a few messages unacknowledged,
//     and count what is acknowledged. Limit: in the bare broker's own process, as many publishers
//     send batches of the same size, as deep, to the same kind of streams. It has no TLS, no MQTT,
//     nothing to read or check, and no load generator beside it.
//   - latency: from the hub's write to the event stream's reader, one event at a time. Limit: a
//     hub's round trip through the bare broker (publish, an answer in process) plus one synced
//     append of the same message.
//   - pages: 8 readers on kept-alive connections. Cold: every page of many logs, once, after a
//     restart. Limit: direct gets of the same pages in the bare broker's own process on a copy of
//     the directory. Newest: the newest 2,000 events of one log, over and over. Limit: a bare
//     net/http server that writes one of these pages from memory.
//   - fan-out: events to many event streams. CPU for each delivery is what the server's process
//     used beyond the same events without readers. Limit: a bare net/http server that gets each
//     frame over a socket and writes it to every reader. Latency counts from the hub's write, so
//     the limit is the bare server's latency plus the time in which the service acknowledges such
//     an event to its hub.
//   - beside a tap: readers of many hubs while `hubcloud tap` follows all of them. Limit: the same
//     readers of the same service, without the tap.
//   - resume: all readers connect at once, each with a cursor 100 events back, until the last one
//     has them. Limit: a bare net/http server that writes the 100 frames from memory in one write.
//   - hub memory: what a process grows by for each connected hub that does nothing, its log
//     included. Limit: a stream with one message and an idle MQTT connection of a certificate of
//     its own on the bare broker.
//   - reader memory: the same for event streams on which nothing happens. Limit: the bare net/http
//     server.
//   - start: from the start of the process to ready, with 5,000 hub logs. Limit: the bare broker on
//     a copy of the same directory.
//   - rebuild: the read models of a directory of 200,000 events built anew beside those in use, by
//     `hubcloud projections rebuild`. Limit: a COPY of the same rows from memory, in the same
//     database.
//
// # Memory and CPU
//
// Memory is the resident size of the process after a garbage collection, less what the Go runtime
// holds free and has not returned to the system yet: it does that slowly, and a measurement would
// have to wait for minutes. CPU is the scheduler's sum over the process's threads. Both are of the
// one process; the private database's processes are not counted.
package bench
