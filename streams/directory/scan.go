package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// directGet is answered by any replica of the stream, in batches and without a consumer.
const directGet = "$JS.API.DIRECT.GET." + streams.DirectoryStream

var (
	// errTorn says that messages of a batch did not arrive. They are asked for again.
	errTorn = errors.New("messages of a batch were lost on the way")
	// errGap says that a batch has fewer messages than its place in the stream has sequences. Asked
	// for with headers it shows where.
	errGap = errors.New("a batch has a gap")
)

// scan reads the stream forward in batches. One question may be under way while the answer to the
// one before is dealt with. It belongs to one goroutine.
type scan struct {
	nc      *nats.Conn
	sub     *nats.Subscription
	inbox   string
	subject string
	batch   int

	answers chan *nats.Msg
	// asked counts the questions: answers to an earlier one are passed over.
	asked int
	reply string
	// from is where the answer begins, and bare that its messages come without headers: the broker
	// is three times as fast with them, and they say nothing of their place. It follows from the
	// place of the last one, as long as there is no gap.
	from uint64
	bare bool
}

func newScan(nc *nats.Conn, subject string, batch int) (*scan, error) {
	// Room for a whole batch and its end, and for the rest of one that was given up: nothing is
	// dropped here.
	s := &scan{
		nc:      nc,
		inbox:   nc.NewInbox(),
		subject: subject,
		batch:   batch,
		answers: make(chan *nats.Msg, 2*(batch+1)),
	}
	sub, err := nc.ChanSubscribe(s.inbox+".*", s.answers)
	if err != nil {
		return nil, err
	}
	s.sub = sub
	return s, nil
}

// fails only when the connection is gone, and the subscription with it
func (s *scan) close() { _ = s.sub.Unsubscribe() }

// ask asks for the messages from a sequence on. bare is for a scan of the whole stream. What an
// earlier question still brings is passed over.
func (s *scan) ask(from uint64, bare bool) error {
	question, err := json.Marshal(struct {
		Seq       uint64 `json:"seq"`
		Batch     int    `json:"batch"`
		NextFor   string `json:"next_by_subj"`
		NoHeaders bool   `json:"no_hdr,omitempty"`
	}{from, s.batch, s.subject, bare})
	if err != nil {
		return err
	}
	s.asked++
	s.reply = s.inbox + "." + strconv.Itoa(s.asked)
	s.from, s.bare = from, bare
	return s.nc.PublishRequest(directGet, s.reply, question)
}

// collect waits for all of the answer. No messages at all: the stream, or the replica that
// answered, had no more.
func (s *scan) collect(ctx context.Context) ([]stored, error) {
	var msgs []stored
	var last uint64
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case msg := <-s.answers:
			if msg.Subject != s.reply {
				continue
			}
			switch status := msg.Header.Get("Status"); status {
			case "":
			case "404": // nothing at or after the sequence
				return nil, nil
			case "204": // the end of the batch
				return msgs, s.checkEnd(msg, len(msgs), last)
			case "503":
				return nil, nats.ErrNoResponders
			default:
				return nil, fmt.Errorf(
					"the broker refuses to read: %s %s", status, msg.Header.Get("Description"),
				)
			}
			m := stored{seq: s.from + uint64(len(msgs)), data: msg.Data}
			if !s.bare {
				var err error
				if m, err = storedOf(msg); err != nil {
					return nil, err
				}
				if before, err := number(msg, "Nats-Last-Sequence"); err != nil || before != last {
					return nil, errors.Join(errTorn, err)
				}
			}
			last = m.seq
			msgs = append(msgs, m)
		}
	}
}

// checkEnd compares what came with what the broker says it sent.
func (s *scan) checkEnd(end *nats.Msg, count int, last uint64) error {
	sent, err := number(end, "Nats-Last-Sequence")
	switch {
	case err != nil:
		return err
	case sent == last && count > 0:
		return nil
	case s.bare:
		return errGap
	default:
		return errTorn
	}
}

// storedOf reads a message as direct gets with headers answer it, and as it is published again.
func storedOf(msg *nats.Msg) (stored, error) {
	seq, err := number(msg, "Nats-Sequence")
	return stored{seq: seq, data: msg.Data}, err
}

func number(msg *nats.Msg, header string) (uint64, error) {
	n, err := strconv.ParseUint(msg.Header.Get(header), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("unreadable header %s of the broker: %w", header, err)
	}
	return n, nil
}
