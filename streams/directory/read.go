package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
)

const (
	// leaderGet is answered by the stream's leader alone: it has everything that was acknowledged.
	leaderGet = "$JS.API.STREAM.MSG.GET." + streams.DirectoryStream
	// codeNoMessage is the broker's error code for a subject without a message.
	codeNoMessage = 10037
	// loadBatch is how many events one question of Load asks for.
	loadBatch = 256
)

// stored is one message of the stream.
type stored struct {
	seq  uint64
	data []byte
	// follows is the last sequence of the subject before this message, if known: the condition on
	// which it was appended.
	follows   uint64
	followsOK bool
	// at is when it was stored, and subject what it was stored under, if the leader was asked.
	at      time.Time
	subject string
}

// Load gives the events of one aggregate after a sequence, oldest first, and the sequence of the
// last one (after itself when there is none). It is fresh: everything that was acknowledged before
// the call is there. It ends with fn's error, and with an error at an event that cannot be read: an
// aggregate with a hole in it must not be decided upon.
func (l *Log) Load(
	ctx context.Context, subject string, after uint64, fn func(seq uint64, e domain.Event) error,
) (last uint64, err error) {
	last = after
	give := func(m stored) error {
		e, _, err := domain.DecodeEvent(m.data)
		if err != nil {
			return fmt.Errorf("sequence %d: %w", m.seq, err)
		}
		if err := fn(m.seq, e); err != nil {
			return err
		}
		last = m.seq
		return nil
	}
	newest, ok, err := l.newest(ctx, subject)
	switch {
	case err != nil || !ok || newest.seq <= after:
	case newest.followsOK && newest.follows == after:
		// Most loads: a new aggregate of one event, or a known one with one event more.
		err = give(newest)
	default:
		// Any replica may answer these, also one that is behind: it is asked until it has come as
		// far as the leader was.
		err = persist(ctx, func(ctx context.Context) (again bool, err error) {
			for last < newest.seq {
				msgs, err := l.read(ctx, subject, last+1)
				if err != nil {
					return true, err
				}
				if len(msgs) == 0 {
					return true, errBehind
				}
				for _, m := range msgs {
					if err := give(m); err != nil {
						return false, err
					}
				}
			}
			return false, nil
		})
	}
	if err != nil {
		return last, fmt.Errorf("directory: load %s: %w", subject, err)
	}
	return last, nil
}

var errBehind = errors.New("the broker's replica that answered is behind")

// newest asks the leader for the last message of a subject.
func (l *Log) newest(ctx context.Context, subject string) (m stored, ok bool, err error) {
	question, err := json.Marshal(struct {
		LastFor string `json:"last_by_subj"`
	}{subject})
	if err != nil {
		return stored{}, false, err
	}
	return l.ask(ctx, question)
}

// ask asks the leader for one message, until it answers.
func (l *Log) ask(ctx context.Context, question []byte) (m stored, ok bool, err error) {
	err = persist(ctx, func(ctx context.Context) (again bool, err error) {
		m, ok, err = l.askLeader(ctx, question)
		var refusal *streams.BrokerError
		return !errors.As(err, &refusal) || streams.Passing(err), err
	})
	return m, ok, err
}

func (l *Log) askLeader(ctx context.Context, question []byte) (m stored, ok bool, err error) {
	text, err := streams.Ask(ctx, l.nc, leaderGet, question)
	if err != nil {
		return stored{}, false, err
	}
	var answer struct {
		Error   *streams.BrokerError `json:"error"`
		Message *struct {
			Seq     uint64    `json:"seq"`
			Subject string    `json:"subject"`
			Headers []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			At      time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return stored{}, false, fmt.Errorf("unreadable answer of the broker: %w", err)
	}
	switch {
	case answer.Error != nil && answer.Error.Code == codeNoMessage:
		return stored{}, false, nil
	case answer.Error != nil:
		return stored{}, false, answer.Error
	case answer.Message == nil:
		return stored{}, false, errors.New("unreadable answer of the broker: no message")
	}
	m = stored{
		seq:     answer.Message.Seq,
		data:    answer.Message.Data,
		at:      answer.Message.At,
		subject: answer.Message.Subject,
	}
	if headers, err := nats.DecodeHeadersMsg(answer.Message.Headers); err == nil &&
		headers.Get("Nats-Batch-Id") == "" {
		follows, err := strconv.ParseUint(
			headers.Get("Nats-Expected-Last-Subject-Sequence"), 10, 64,
		)
		m.follows, m.followsOK = follows, err == nil
	}
	return m, true, nil
}

// read gives the next messages of a subject from a sequence on, none when there are none.
func (l *Log) read(ctx context.Context, subject string, from uint64) ([]stored, error) {
	s, err := newScan(l.nc, subject, loadBatch)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.ask(from, false); err != nil {
		return nil, err
	}
	return s.collect(ctx)
}
