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

// errTorn says that messages of a batch did not arrive. They are asked for again.
var errTorn = errors.New("messages of a batch were lost on the way")

// scan reads the stream forward in batches. One question may be under way while the answer to the one before is dealt with. It belongs to
// one goroutine.
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
}

func newScan(nc *nats.Conn, subject string, batch int) (*scan, error) {
	// Room for a whole batch and its end, and for the rest of one that was given up: nothing is dropped here.
	s := &scan{nc: nc, inbox: nc.NewInbox(), subject: subject, batch: batch, answers: make(chan *nats.Msg, 2*(batch+1))}
	sub, err := nc.ChanSubscribe(s.inbox+".*", s.answers)
	if err != nil {
		return nil, err
	}
	s.sub = sub
	return s, nil
}

func (s *scan) close() { _ = s.sub.Unsubscribe() } // fails only when the connection is gone, and the subscription with it

// ask asks for the messages from a sequence on. What an earlier question still brings is passed over.
func (s *scan) ask(from uint64) error {
	question, err := json.Marshal(struct {
		Seq     uint64 `json:"seq"`
		Batch   int    `json:"batch"`
		NextFor string `json:"next_by_subj"`
	}{from, s.batch, s.subject})
	if err != nil {
		return err
	}
	s.asked++
	s.reply = s.inbox + "." + strconv.Itoa(s.asked)
	return s.nc.PublishRequest(directGet, s.reply, question)
}

// collect waits for all of the answer. more says that the stream had more to give at that moment.
func (s *scan) collect(ctx context.Context) (msgs []stored, more bool, err error) {
	var before uint64
	for {
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case msg := <-s.answers:
			if msg.Subject != s.reply {
				continue
			}
			switch status := msg.Header.Get("Status"); status {
			case "":
			case "404": // nothing at or after the sequence
				return nil, false, nil
			case "204": // the end of the batch
				if last, err := number(msg, "Nats-Last-Sequence"); err != nil || last != before {
					return nil, false, errors.Join(errTorn, err)
				}
				return msgs, msg.Header.Get("Nats-Num-Pending") != "0", nil
			case "503":
				return nil, false, nats.ErrNoResponders
			default:
				return nil, false, fmt.Errorf("the broker refuses to read: %s %s", status, msg.Header.Get("Description"))
			}
			m, err := storedOf(msg)
			if err != nil {
				return nil, false, err
			}
			if previous, err := number(msg, "Nats-Last-Sequence"); err != nil || previous != before {
				return nil, false, errors.Join(errTorn, err)
			}
			before = m.seq
			msgs = append(msgs, m)
		}
	}
}

// storedOf reads a message as direct gets answer it and as it is published again.
func storedOf(msg *nats.Msg) (stored, error) {
	seq, err := number(msg, "Nats-Sequence")
	return stored{seq: seq, subject: msg.Header.Get("Nats-Subject"), data: msg.Data}, err
}

func number(msg *nats.Msg, header string) (uint64, error) {
	n, err := strconv.ParseUint(msg.Header.Get(header), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("unreadable header %s of the broker: %w", header, err)
	}
	return n, nil
}
