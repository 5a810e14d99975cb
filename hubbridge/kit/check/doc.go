// Package check checks whether a hub follows the hub protocol. A Check plays the cloud for one
// hub: it issues certificates and accepts MQTT connections as the service does, and drives the hub
// with faults that the service has only in bad moments: it withholds acks, repeats requests, cuts
// connections and rejects one.
//
// The endpoint is the check's own, not a running service's, because a broker shows neither the
// packets that it rejects nor their order, and a service cannot withhold its acks from one hub.
// What hubs send is decoded by the service's own packages: identity for enrolments, codec for
// messages.
//
// A Check has a table of lines (Lines). Each line is about one or more rules of the protocol's
// page and ends as passed, failed or not seen. Some lines are observed on every packet; others are
// decided by the script, which Run goes through step by step. A line that has failed stays failed.
//
// Concurrency: one goroutine runs the script, one each connection, and the HTTP server its own.
// They share the Check's state under one mutex and wake each other with a broadcast. Run owns all
// of them and returns when they have ended. Config.OnLine and Config.OnStep are called with the
// mutex held, one at a time.
//
// Bounds: an MQTT packet has at most 2 MiB, as at the service's broker; at most 4 connections are
// open at once, each with a deadline for TLS and CONNECT; every wait of the script has a limit, and
// Config.Timeout limits the whole.
package check
