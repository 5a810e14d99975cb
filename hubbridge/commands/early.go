package commands

import (
	"context"
	"sync"

	"hubcloud/domain"
)

// earlyRecord is the record of a command that is stored at the same time as its idempotency key, so
// that both take one wait for the disk instead of two. The command is sent once both are stored. If
// the key turns out to be taken, the record is withdrawn: a record of an outcome follows it at
// once. Its methods belong to the goroutine of the call.
type earlyRecord struct {
	// record is what is stored. Its CommandID is empty until begin is called, which is not called
	// for every key.
	record
	commands *Commands
	// ctx is the call's context. The record may have to be waited for after execute has returned.
	calling context.Context
	// work is the storing of the record, and its withdrawal. err is the error of the former, valid
	// once appended is closed.
	work     sync.WaitGroup
	appended chan struct{}
	err      error
}

// newEarlyRecord returns the record of a command that begin stores. calling is the context of the
// call. It must not end before wait has returned.
func (c *Commands) newEarlyRecord(
	calling context.Context, o domain.Origin, command domain.Command,
) *earlyRecord {
	return &earlyRecord{
		record: newRecord(o, command, ""), commands: c, calling: calling,
		appended: make(chan struct{}),
	}
}

// begin starts to store the record under a command ID. withdraw starts to record that the command
// is not sent: because of err, or for nil because the key was taken.
func (e *earlyRecord) begin(commandID string) (withdraw func(err error)) {
	e.CommandID = commandID
	e.work.Go(func() {
		e.err = e.commands.recordRequest(e.calling, e.record)
		close(e.appended)
	})
	return func(err error) { e.work.Go(func() { e.withdraw(err) }) }
}

// stored waits until the record is stored, or returns why it is not. begin must have been called.
func (e *earlyRecord) stored() error {
	<-e.appended
	return e.err
}

// withdraw records that the command is not sent. A record that is possibly stored although storage
// returned an error is left as it is, as after a crash.
func (e *earlyRecord) withdraw(err error) {
	if e.stored() != nil {
		return
	}
	outcome := e.answered(e.commands.cfg.Now(), e.commands.notSent(err))
	if err == nil {
		outcome.Outcome = outcomeWithdrawn
	}
	e.commands.recordOutcome(e.calling, outcome)
}

// wait returns once nothing is stored any more.
func (e *earlyRecord) wait() { e.work.Wait() }
