package hublog

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
)

// Headers of the broker on what it has stored.
const (
	headerSequence      = "Nats-Sequence"
	headerSubject       = "Nats-Subject"
	headerTimeStamp     = "Nats-Time-Stamp"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// stored is one message of a hub's stream, from the feed or from a direct get.
type stored struct {
	seq  uint64
	data []byte
	// event is whether it is an event, and not a record of a command.
	event bool
	// at is when it was stored.
	at time.Time
	// epoch and org are those of an event; org may be empty.
	epoch domain.EpochID
	org   string
	// batchSeq is its place in the atomic batch that it came with, from 1, and 0 when it came
	// alone; batchCommit marks the last of a batch.
	batchSeq    uint64
	batchCommit bool
}

// parseStored reads what the broker says of a message beside its payload.
func parseStored(msg *nats.Msg) (m stored, err error) {
	m.data = msg.Data
	if m.seq, err = strconv.ParseUint(field(msg, headerSequence), 10, 64); err != nil {
		return m, fmt.Errorf("sequence: %w", err)
	}
	if text := field(msg, headerBatchSequence); text != "" {
		if m.batchSeq, err = strconv.ParseUint(text, 10, 64); err != nil || m.batchSeq > m.seq {
			return m, fmt.Errorf("sequence %d: place in its batch: %q", m.seq, text)
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

// isEvent tells log.<hub>.event.… from the rest.
func isEvent(subject string) bool {
	_, rest, _ := strings.Cut(subject, ".")
	_, kind, _ := strings.Cut(rest, ".")
	return strings.HasPrefix(kind, "event.")
}

// field gives a header of exactly that spelling.
func field(msg *nats.Msg, name string) string {
	if values := msg.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}
