// Package apply turns the entries of a stream into changes of the read models' tables, and commits
// them.
//
// A Source reads the stream of a projection and turns its entries into statements. A Writer commits
// the entries in order, batch by batch: rows and checkpoint in one transaction, which fails with
// ErrMoved if another process has moved the checkpoint. So every entry is applied once, even if
// several processes project. The rows do not depend on how the entries are divided into batches.
//
// If an entry cannot be read or applied, the Writer commits everything before it and returns a
// *projections.StoppedError. After any other error the caller can try again from the checkpoint.
//
// The package starts no goroutines.
package apply
