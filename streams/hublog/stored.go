package hublog

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
)

// Headers that the broker adds to stored messages.
const (
	headerSequence      = "Nats-Sequence"
	headerSubject       = "Nats-Subject"
	headerTimeStamp     = "Nats-Time-Stamp"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// stored is a message of a hub's stream, from the feed or from a direct get.
type stored struct {
	seq  uint64
	data []byte
	// event is whether it is an event; otherwise it is the record of a command.
	event bool
	// at is when it was stored.
	at time.Time
	// epoch and org are those of an event; org may be empty.
	epoch domain.EpochID
	org   string
	// batchSeq is its number within its atomic batch, from 1; 0 outside of a batch. batchCommit is
	// whether it is the last of its batch.
	batchSeq    uint64
	batchCommit bool
}

// parseStored reads a message and its headers.
func parseStored(msg *nats.Msg) (m stored, err error) {
	m.data = msg.Data
	if m.seq, err = strconv.ParseUint(field(msg, headerSequence), 10, 64); err != nil {
		return m, fmt.Errorf("sequence: %w", err)
	}
	if text := field(msg, headerBatchSequence); text != "" {
		if m.batchSeq, err = strconv.ParseUint(text, 10, 64); err != nil || m.batchSeq > m.seq {
			return m, fmt.Errorf(
				"sequence %d: batch sequence %q: must be a number up to the sequence", m.seq, text,
			)
		}
		m.batchCommit = field(msg, headerBatchCommit) != ""
	}
	if m.at, err = time.Parse(time.RFC3339Nano, field(msg, headerTimeStamp)); err != nil {
		return m, fmt.Errorf("sequence %d: %w", m.seq, err)
	}
	m.event = isEvent(field(msg, headerSubject))
	if !m.event {
		return m, nil
	}
	m.org = field(msg, headerOrg)
	if m.epoch, err = domain.ParseEpochID(field(msg, headerEpoch)); err != nil {
		return m, fmt.Errorf("sequence %d: %w", m.seq, err)
	}
	return m, nil
}

func (m stored) encode() (domain.EncodedEvent, error) {
	return encode(m.epoch, m.seq, m.at, m.data)
}

// isEvent reports whether a subject is log.<hub>.event.….
func isEvent(subject string) bool {
	_, rest, _ := strings.Cut(subject, ".")
	_, kind, _ := strings.Cut(rest, ".")
	return strings.HasPrefix(kind, "event.")
}

// field returns the first value of a header; the name must match exactly.
func field(msg *nats.Msg, name string) string {
	if values := msg.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}
