package journal

import (
	"errors"
	"fmt"

	"hubcloud/streams/jsapi"
)

var (
	// ErrFenced reports that another writer has written to the journal since. The commit is not
	// stored, and never will be.
	ErrFenced = errors.New("another writer has taken over the journal")
	// ErrNotStored reports that the broker did not store a commit, because its disk or the stream
	// is full or because the journal has no leader. It never will be stored. The writer can be
	// used again.
	ErrNotStored = errors.New("the commit was not stored")
	// ErrOutcomeUnknown reports that no answer came: the commit may be stored, may be stored later,
	// or may not be stored at all. The next writer of the journal decides it.
	ErrOutcomeUnknown = jsapi.ErrOutcomeUnknown
	// ErrBeyondEnd reports that a journal ends before a commit that was already read: it is another
	// journal, or was restored from an older copy.
	ErrBeyondEnd = errors.New("the journal ends before a commit that was read")
	// ErrGone reports that the journal has no such records of the hub any more.
	ErrGone = errors.New("the journal does not have these records any more")
	// ErrStopped reports that a follower does not run any more.
	ErrStopped = errors.New("the follower has stopped")
)

// groupError adds the group to an error of its journal.
func groupError(group int, err error) error {
	return fmt.Errorf("journal of group %d: %w", group, err)
}
