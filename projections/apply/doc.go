// Package apply turns the entries of a stream into changes of the read models' tables, and commits
// them.
//
// A Source is the stream of a projection together with the meaning of its entries. A Writer commits
// the entries in order, batch by batch: rows and checkpoint in one transaction, which fails with
// ErrMoved if another process has moved the checkpoint. So every entry is applied once, whichever
// processes race. However a history is cut into batches, the rows are the same.
//
// An entry that cannot be read or applied stops the Writer exactly there, with a
// *projections.StoppedError; everything before the entry is committed. Any other error may pass:
// the caller tries again from the checkpoint.
//
// The package starts no goroutines.
package apply
