package jsapi

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of the broker that nats.go has no constant for.
const (
	// HeaderBatchSequence is the position of a message in the atomic batch that it was stored with,
	// from 1. The broker keeps it with the message.
	HeaderBatchSequence = "Nats-Batch-Sequence"
	// HeaderBatchCommit marks the last message of an atomic batch.
	HeaderBatchCommit = "Nats-Batch-Commit"
	// HeaderBatchID names an atomic batch.
	HeaderBatchID = "Nats-Batch-Id"
	// HeaderSubject is the subject of a message that a direct get returns or the broker has
	// republished.
	HeaderSubject = jetstream.SubjectHeader
	// HeaderTime is when such a message was stored, in RFC 3339 with nanoseconds.
	HeaderTime = jetstream.TimeStampHeaer

	headerStatus                  = "Status"
	headerDescription             = "Description"
	headerSequence                = jetstream.SequenceHeader
	headerLastSequence            = jetstream.LastSequenceHeader
	headerPending                 = "Nats-Num-Pending"
	headerExpectedSubjectSequence = jetstream.ExpectedLastSubjSeqHeader
	headerExpectedSubject         = jetstream.ExpectedLastSubjSeqSubjHeader
	headerOperation               = "KV-Operation"
	headerMarkerReason            = jetstream.MarkerReasonHeader
)

// Field returns a header in exactly that spelling, and "" without it. It is faster than
// nats.Header.Get, and enough for headers that the broker writes.
func Field(h nats.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Sequence returns the sequence of a message that a direct get has returned or that the broker has
// republished.
func Sequence(msg *nats.Msg) (uint64, error) { return number(msg.Header, headerSequence) }

// SetPublished adds the headers that the broker adds to a message of a stream that it republishes,
// except for Nats-Last-Sequence: the message's stream, subject, sequence and time.
func SetPublished(h nats.Header, stream, subject string, sequence uint64, at time.Time) {
	h[jetstream.StreamHeader] = []string{stream}
	h[HeaderSubject] = []string{subject}
	h[headerSequence] = []string{strconv.FormatUint(sequence, 10)}
	h[HeaderTime] = []string{at.UTC().Format(time.RFC3339Nano)}
}

// ExpectedLast returns the sequence that ExpectLast set on a message that was stored by itself. ok
// is false for a message without an expectation and for one of a batch, whose first message carries
// the expectation.
func ExpectedLast(h nats.Header) (sequence uint64, ok bool) {
	if Field(h, HeaderBatchID) != "" {
		return 0, false
	}
	sequence, err := number(h, headerExpectedSubjectSequence)
	return sequence, err == nil
}

func number(h nats.Header, name string) (uint64, error) {
	n, err := strconv.ParseUint(Field(h, name), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("unreadable header %s of the broker: %w", name, err)
	}
	return n, nil
}
