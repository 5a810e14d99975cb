package backup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// buckets are those that are taken, in their order. The ledger comes before the DIRECTORY: one of a
// hub that nobody has added yet stops the hub.
var buckets = [...]string{"installation", "key-use", "presence", "ledger", "idempotency"}

const (
	// getBatch is how many keys one question asks for, and getBytes about how many bytes.
	getBatch = 512
	getBytes = 1 << 20
	// putsAtOnce is how many keys are on their way to the broker.
	putsAtOnce = 1024
	// maxEntry bounds a line of a bucket's file: the broker's own limit for a message, in base64.
	maxEntry = 4 << 20

	headerOperation = "KV-Operation"
)

// entry is one key of a bucket, as a line of JSON. A key can come more than once: the last counts.
type entry struct {
	Key string `json:"key"`
	// Value is in base64.
	Value []byte `json:"value,omitempty"`
	// Gone says that the key was removed.
	Gone bool `json:"gone,omitempty"`
}

// readBucket writes the keys of a bucket, one a line, until there are none left that it has not
// read.
func readBucket(
	ctx context.Context, nc *nats.Conn, bucket string, w io.Writer, passed func(int64),
) error {
	r := bucketReader{nc: nc, stream: "KV_" + bucket, prefix: "$KV." + bucket + ".", next: 1}
	lines := json.NewEncoder(w)
	for {
		batch, err := r.batch(ctx)
		if err == nil && len(batch) == 0 {
			// Whichever replica has answered may be behind: that there is no more is the leader's
			// to say.
			batch, err = r.leaders(ctx)
		}
		if err != nil {
			return fmt.Errorf("bucket %s: %w", bucket, err)
		}
		if len(batch) == 0 {
			return nil
		}
		for _, e := range batch {
			if err := lines.Encode(e); err != nil {
				return err
			}
			passed(int64(len(e.Value)))
		}
	}
}

// bucketReader reads the stream of a bucket from the front.
type bucketReader struct {
	nc     *nats.Conn
	stream string
	prefix string
	next   uint64
}

// batch asks for the next keys. None can also mean that the replica that answered is behind.
func (r *bucketReader) batch(ctx context.Context) (batch []entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	question, err := json.Marshal(
		map[string]uint64{"seq": r.next, "batch": getBatch, "max_bytes": getBytes},
	)
	if err != nil {
		return nil, err
	}
	inbox := r.nc.NewInbox()
	answers, err := r.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	// fails only with the connection, which ends it too
	defer func() { _ = answers.Unsubscribe() }()
	if err := r.nc.PublishRequest(apiDirectGet+r.stream, inbox, question); err != nil {
		return nil, err
	}
	for {
		msg, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			return nil, err
		}
		switch status := msg.Header.Get("Status"); status {
		case "":
		case "204", "404":
			return batch, nil
		default:
			return nil, fmt.Errorf("direct get: %s %s", status, msg.Header.Get("Description"))
		}
		sequence, err := strconv.ParseUint(msg.Header.Get("Nats-Sequence"), 10, 64)
		if err != nil || sequence < r.next {
			return nil, fmt.Errorf(
				"direct get: sequence %q after %d", msg.Header.Get("Nats-Sequence"), r.next,
			)
		}
		r.next = sequence + 1
		batch = append(batch, r.entry(msg.Header.Get("Nats-Subject"), msg.Header, msg.Data))
	}
}

// leaders asks the leader for the next key.
func (r *bucketReader) leaders(ctx context.Context) ([]entry, error) {
	var answer struct {
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Headers []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	err := ask(
		ctx, r.nc, apiMessageGet+r.stream,
		map[string]any{"seq": r.next, "next_by_subj": r.prefix + ">"}, &answer,
	)
	if isCode(err, codeNoMessage) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	header := nats.Header{}
	if len(answer.Message.Headers) > 0 {
		if header, err = nats.DecodeHeadersMsg(answer.Message.Headers); err != nil {
			return nil, err
		}
	}
	r.next = answer.Message.Seq + 1
	return []entry{r.entry(answer.Message.Subject, header, answer.Message.Data)}, nil
}

// entry makes a message of the bucket's stream an entry. What removes a key has an operation, or
// the broker's mark of one that ran out.
func (r *bucketReader) entry(subject string, header nats.Header, value []byte) entry {
	e := entry{Key: strings.TrimPrefix(subject, r.prefix)}
	if header.Get(headerOperation) != "" || header.Get("Nats-Marker-Reason") != "" {
		e.Gone = true
		return e
	}
	e.Value = value
	return e
}

// restoreBucket puts the keys of a file into a bucket that is empty.
func restoreBucket(
	ctx context.Context, nc *nats.Conn, bucket string, r io.Reader, passed func(int64),
) error {
	puts, err := newPuts(nc)
	if err != nil {
		return err
	}
	defer puts.close()
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxEntry)
	for lines.Scan() {
		e, err := parseEntry(lines.Bytes())
		if err != nil {
			return fmt.Errorf("bucket %s: %w", bucket, err)
		}
		msg := nats.NewMsg("$KV." + bucket + "." + e.Key)
		if msg.Data = e.Value; e.Gone {
			msg.Header.Set(headerOperation, "DEL")
		}
		if err := puts.put(ctx, msg); err != nil {
			return fmt.Errorf("bucket %s: %w", bucket, err)
		}
		passed(int64(len(lines.Bytes())) + 1)
	}
	if err := errors.Join(lines.Err(), puts.settle(ctx, 0)); err != nil {
		return fmt.Errorf("bucket %s: %w", bucket, err)
	}
	return nil
}

// puts sends messages to a stream without waiting for each to be stored, in their order. It belongs
// to one goroutine.
type puts struct {
	nc    *nats.Conn
	inbox string
	acks  *nats.Subscription
	// open is how many are on their way.
	open int
}

func newPuts(nc *nats.Conn) (*puts, error) {
	p := &puts{nc: nc, inbox: nc.NewInbox()}
	var err error
	p.acks, err = nc.SubscribeSync(p.inbox)
	return p, err
}

// fails only with the connection, which ends it too
func (p *puts) close() { _ = p.acks.Unsubscribe() }

func (p *puts) put(ctx context.Context, msg *nats.Msg) error {
	if err := p.settle(ctx, putsAtOnce-1); err != nil {
		return err
	}
	msg.Reply = p.inbox
	p.open++
	return p.nc.PublishMsg(msg)
}

// settle waits until no more than so many are on their way.
func (p *puts) settle(ctx context.Context, most int) error {
	if p.open <= most {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, quietTimeout)
	defer cancel()
	for p.open > most {
		ack, err := p.acks.NextMsgWithContext(ctx)
		if err == nil && ack.Header.Get("Status") != "" {
			err = streams.ErrNoStream
		}
		if err == nil {
			err = decodeAnswer(ack.Data, nil)
		}
		if err != nil {
			return err
		}
		p.open--
	}
	return nil
}

// parseEntry reads a line of a bucket's file. A key with anything that means more than itself in a
// subject is none of the service's.
func parseEntry(line []byte) (e entry, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("%w: a line is no key of a bucket", ErrDamaged)
	}
	if e.Key == "" || strings.ContainsAny(e.Key, "*> \t\r\n") ||
		strings.Trim(e.Key, ".") != e.Key ||
		strings.Contains(e.Key, "..") {
		return e, fmt.Errorf("%w: %q is no key", ErrDamaged, e.Key)
	}
	return e, nil
}

// bucketFile names the file of a bucket.
func bucketFile(bucket string) string { return "buckets/" + bucket + ".jsonl" }

// streamFile names the file of a stream's snapshot.
func streamFile(account streams.Account, stream string) string {
	if account == streams.AccountCloud {
		return "streams/" + stream + ".snapshot"
	}
	return "hublogs/" + string(account) + "/" + stream + ".snapshot"
}
