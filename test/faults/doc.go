// Package faults tries the built binary under fire: hubs that resend, lie, flood and vanish, a
// service that is killed in the midst of it, replicas of it that come and go, and a cluster of
// brokers that loses one. Every event is to be stored exactly once and in order, no consumer may
// miss one without being told, and what was answered holds.
//
// TestOutages stops, cuts off, wipes and kills each part of a cluster: one round by default,
// -faults.rounds N for more. TestPowerCut cuts the power of the disk, on a file system that forgets
// what was not synced: -power.cuts N.
package faults
