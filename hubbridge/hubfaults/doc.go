// Package hubfaults keeps what hubs do wrong: which hub breaks which part of the hub protocol,
// since when, and the last evidence.
//
// A Registry holds the faults of the hubs that one process serves, in memory. Ingest and the broker
// report to it. At most maxHubs hubs are kept; a fault that does not fit is only counted. Two kinds
// of faults begin when something does not happen: a hub that is connected says no hello, or sends
// no event that the cloud waits for. The Registry waits for these itself, in Run.
//
// A fault ends when the hub does the missing thing or disconnects. A fault that is an act, such as
// a malformed event, ends when it has not been repeated for quietTime. After a restart, or when
// another replica takes over the shard, faults are found again.
//
// Each fault is logged when it begins and ends. The metrics count the hubs by reason. Serve answers
// the questions of a Reader, in any process: each shard's faults are known to the replica that
// serves the shard.
package hubfaults
