// Package sim runs a cluster in one process, in virtual time (testing/synctest): three nats-servers
// with real Raft, TLS and synced files, on a network in memory that loses, delays and resets what a
// seed says. A minute of the cluster takes a second, so faults by the thousand can be tried.
//
// It is a module of its own, since it needs a patched nats-server: prepare.sh copies it from the
// module cache and applies nats-server.patch, which `make sim` does before each run.
//
// What virtual time asks of the code:
//
//   - Nothing may wait for a mutex while its holder waits for time to pass, since virtual time
//     passes only when every goroutine waits for something else. So writes to the network never
//     wait (conn.Write).
//   - nats-server's clock for its stores (package ats) runs outside of the bubbles (TestMain).
//   - One processor, random numbers from the seed, and no two arrivals in the same nanosecond make
//     most runs repeat. The order in which Go's scheduler and maps take things is not in the seed.
package sim
