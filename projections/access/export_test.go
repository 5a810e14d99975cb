package access

import (
	"hubcloud/streams/directory"
)

// Apply applies a batch of readable events.
func (a *Index) Apply(batch []directory.Recorded) error {
	_, err := a.apply(batch, nil)
	return err
}
