// Package faults tests the built binary under faults: hubs that resend, violate the protocol, flood
// and vanish; a service, its replicas and its broker cluster that are stopped, cut off, wiped and
// killed. Every acknowledged event must be stored exactly once and in order, no consumer may miss
// an event unnoticed, and every answered change must persist.
//
// TestKill kills the service under traffic, and damages hub logs while it is stopped: -kills N.
//
// TestOutages takes a cluster through outages of its parts: one round by default, -faults.rounds N for
// more. What happens when networks are cut, processes stop, and disks of servers are slow or full,
// test/sim decides. TestPowerCut cuts the power of the disk, on a file system that loses unsynced
// changes: -power.cuts N.
package faults
