// Package alarmstate stores what was mailed about conditions: a record for each organization, in
// the bucket `alarm-mails`, and the key of the links that end these mails. The content of a record
// is opaque.
//
// # Promises
//
//   - A record is written on condition that it is the one that was read: of two processes that
//     decide about the same mails, one fails with ErrConflict, and none of its mails is queued.
//   - A record that was written survives what the broker's other streams survive. It does not depend
//     on Postgres.
//   - The key is created once and is the same in every replica. It is in no log and in no error.
//
// The package starts no goroutines.
package alarmstate
