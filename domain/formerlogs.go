package domain

import (
	"strconv"
	"strings"
)

// FormerLogs are the tags that a hub's event log had before its installation was restored from a
// backup that had the log in it, once or several times, and the sequence up to which each of them
// still stands: what was stored behind that is gone, and other events have its sequences now. As
// text they are `tag:sequence`, oldest first, with a space between; empty for a log that was never
// restored. A sequence of 0 says that nothing of the log was in the backup: its tag is no event's
// any more, but still the log's that other records speak of.
type FormerLogs string

// maxFormerLogs is how many restores are remembered. What was stored before is read no more.
const maxFormerLogs = 8

// FormerLog is one of them.
type FormerLog struct {
	Tag     string
	Through uint64
}

// List gives them one by one, oldest first. What cannot be read is left out: nothing has its tag
// then.
func (f FormerLogs) List() []FormerLog {
	if f == "" {
		return nil
	}
	var all []FormerLog
	for text := range strings.FieldsSeq(string(f)) {
		tag, sequence, _ := strings.Cut(text, ":")
		if through, err := strconv.ParseUint(sequence, 10, 64); err == nil {
			all = append(all, FormerLog{Tag: tag, Through: through})
		}
	}
	return all
}

// Find gives the one with that tag.
func (f FormerLogs) Find(tag string) (FormerLog, bool) {
	for _, former := range f.List() {
		if former.Tag == tag {
			return former, true
		}
	}
	return FormerLog{}, false
}

// At gives the tag of what is stored under a sequence, where current is the log's own.
func (f FormerLogs) At(sequence uint64, current string) string {
	for _, former := range f.List() {
		if sequence <= former.Through && former.Through > 0 {
			return former.Tag
		}
	}
	return current
}

// then adds the log's tag at a restore that brought it back up to a sequence. Of those before
// nothing behind that is left either.
func (f FormerLogs) then(tag string, through uint64) FormerLogs {
	all := append(f.List(), FormerLog{Tag: tag, Through: through})
	var text strings.Builder
	for _, former := range all[max(0, len(all)-maxFormerLogs):] {
		if text.Len() > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(former.Tag)
		text.WriteByte(':')
		text.WriteString(strconv.FormatUint(min(former.Through, through), 10))
	}
	return FormerLogs(text.String())
}
