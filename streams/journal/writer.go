package journal

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// patience is how long a commit is tried before its outcome counts as unknown.
	patience = jsapi.Patience
	// tryTimeout bounds the wait for the answer to one try. A leader that is gone never answers.
	tryTimeout = time.Second
	firstPause = 5 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// Writer writes to the journal of one group. The holder of the group's lease has one. It belongs to
// one goroutine.
type Writer struct {
	journal *Journal
	group   int
	term    uint64
	// nonce begins the ids of this writer's commits, and commits counts them.
	nonce   [8]byte
	commits uint64
	// end is the sequence of the last commit, and last the time of the last record.
	end  uint64
	last time.Time
	// dead is the error after which nothing is written any more.
	dead error
}

// OpenWriter returns a writer after every commit that the journal has. It stores a commit without
// records, so that no writer that was opened before can store anything any more. The sequence of
// that commit is the writer's term. held reports whether the caller certainly holds the group's lease:
// otherwise OpenWriter fails with ErrNotStored, since it would end the writer of who does. It fails
// like Writer.Commit and jsapi.API.GetLast.
func (j *Journal) OpenWriter(ctx context.Context, group int, held func() bool) (*Writer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		w, err := j.openWriter(ctx, group, held)
		if err == nil {
			return w, nil
		}
		// The former writer may have stored a commit since the end was read.
		if !errors.Is(err, errOvertaken) || !streams.Sleep(ctx, firstPause) {
			return nil, groupError(group, fmt.Errorf("open a writer: %w", err))
		}
	}
}

// errOvertaken reports that another commit was stored while a writer was opened.
var errOvertaken = fmt.Errorf("overtaken: %w", ErrFenced)

func (j *Journal) openWriter(ctx context.Context, group int, held func() bool) (*Writer, error) {
	w := &Writer{journal: j, group: group}
	_, _ = rand.Read(w.nonce[:]) // never fails
	if err := w.readEnd(ctx); err != nil {
		return nil, err
	}
	if !held() { // after the end was read: what the next holder commits comes after this end
		return nil, fmt.Errorf("%w: the group's lease is not held", ErrNotStored)
	}
	w.term = w.end + 1
	begin := Commit{Seq: w.end + 1, Term: w.term, Time: w.last, id: w.nextID()}
	if err := w.store(ctx, &begin); errors.Is(err, ErrFenced) {
		return nil, errOvertaken
	} else if err != nil {
		return nil, err
	}
	return w, nil
}

// readEnd reads the end of the journal. The answer of a deposed leader may be old; the journal then
// rejects the writer's first commit.
func (w *Writer) readEnd(ctx context.Context) error {
	api, stream := w.journal.api, streams.JournalStream(w.group)
	// First, since a former writer that is still running stores commits meanwhile.
	info, err := api.Info(ctx, stream)
	if err != nil {
		return err
	}
	last, err := api.GetLast(ctx, stream, streams.JournalSubject(w.group))
	if err != nil && !errors.Is(err, jsapi.ErrNotFound) {
		return err
	}
	if err == nil {
		c, err := unmarshalAt(last.Sequence, last.Data)
		if err != nil {
			return err
		}
		w.end, w.last = c.Seq, c.Time
	}
	if info.State.LastSeq <= w.end {
		return nil
	}
	// All commits have expired, or the last ones are lost, if no former writer has stored some
	// meanwhile. The broker has the time of the last one.
	if _, err := api.Get(ctx, stream, info.State.LastSeq); !errors.Is(err, jsapi.ErrNotFound) {
		return errors.Join(errOvertaken, err)
	}
	w.end = info.State.LastSeq
	if at := info.State.LastTime.UTC(); at.After(w.last) {
		w.last = at
	}
	return nil
}

// unmarshalAt reads the commit with a sequence.
func unmarshalAt(seq uint64, data []byte) (Commit, error) {
	c, err := Unmarshal(data)
	if err == nil && c.Seq != seq {
		err = fmt.Errorf("%w: it was written as commit %d", ErrUnreadable, c.Seq)
	}
	if err != nil {
		return Commit{}, fmt.Errorf("commit %d: %w", seq, err)
	}
	return c, nil
}

// LastTime returns the time of the last record in the journal, in UTC; the zero time if it never
// had one. The records of the next commit must be later, also if the clock was set back.
func (w *Writer) LastTime() time.Time { return w.last }

// Term returns the term of the writer's commits. A commit with a later one ends this writer.
func (w *Writer) Term() uint64 { return w.term }

// End returns the sequence of the last commit.
func (w *Writer) End() uint64 { return w.end }

// Commit stores records as the next commit of the journal and returns it. The records must be as
// NewCommit wants them, and later than LastTime. tip must return what is known of a hub after the
// last commit: the caller applies each commit to its index before it calls Commit again.
//
// While the broker does not answer, Commit asks again for 15 s or until ctx ends. It must be called
// again only after it has returned. Errors after which the writer can be used again, and nothing is
// stored: ErrNotStored, and those for invalid records. Errors after which every call fails:
// ErrFenced, ErrOutcomeUnknown.
func (w *Writer) Commit(
	ctx context.Context, records []Record, tip func(domain.HubID) (Tip, bool),
) (Commit, error) {
	if w.dead != nil {
		return Commit{}, w.dead
	}
	if err := ctx.Err(); err != nil {
		return Commit{}, err
	}
	c, err := NewCommit(w.end+1, w.term, records, tip)
	if err == nil && !records[0].Time.After(w.last) {
		err = fmt.Errorf("commit: time: is %v, must be after %v", records[0].Time, w.last)
	}
	if errors.Is(err, ErrFenced) {
		w.journal.metrics.fenced.Inc()
		w.dead = err
	}
	if err != nil {
		return Commit{}, groupError(w.group, err)
	}
	c.id = w.nextID()
	if err := w.store(ctx, &c); err != nil {
		return Commit{}, groupError(w.group, err)
	}
	return c, nil
}

// nextID returns the id of the writer's next commit.
func (w *Writer) nextID() (id commitID) {
	w.commits++
	copy(id[:], w.nonce[:])
	binary.BigEndian.PutUint64(id[len(w.nonce):], w.commits)
	return id
}

// store stores a commit, moves the writer's end behind it, and counts it.
func (w *Writer) store(ctx context.Context, c *Commit) error {
	data, err := Marshal(c)
	if err != nil {
		return err
	}
	begun := time.Now()
	err = w.send(ctx, c.id, data)
	m := w.journal.metrics
	switch {
	case err == nil:
		w.end, w.last = c.Seq, c.Time
		m.commits.Inc()
		m.records.Add(float64(len(c.Records)))
		m.commitBytes.Observe(float64(len(data)))
		m.commitTime.Observe(time.Since(begun).Seconds())
		return nil
	case errors.Is(err, ErrNotStored):
		m.notStored.Inc()
		return err
	case errors.Is(err, ErrFenced):
		m.fenced.Inc()
	default:
		m.unknown.Inc()
	}
	w.dead = err
	return err
}

// send sends a commit until it is known whether it was stored.
func (w *Writer) send(ctx context.Context, id commitID, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	possible := false // whether a try without an answer may be stored
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := w.try(ctx, data)
		conflict := errors.Is(err, jsapi.ErrConflict)
		switch {
		case err == nil:
			return nil
		case conflict:
			// Something has the sequence of this commit: perhaps an earlier try of it.
			found, err := w.storedID(ctx)
			if err == nil && found == id {
				return nil
			}
			if err == nil {
				return fmt.Errorf("%w: commit %d is another's", ErrFenced, w.end+1)
			}
		case errors.Is(err, ErrOutcomeUnknown):
			possible = true
		case possible, errors.Is(err, jsapi.ErrNoStream), errors.Is(err, jsapi.ErrNoLeader):
		default:
			return fmt.Errorf("%w: %w", ErrNotStored, err)
		}
		if streams.Sleep(ctx, pause) && !w.journal.cfg.Conn.IsClosed() {
			w.journal.metrics.retries.Inc()
			continue
		}
		switch {
		case possible:
			return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		case conflict:
			return fmt.Errorf("%w: it does not end with commit %d any more", ErrFenced, w.end)
		default:
			return fmt.Errorf("%w: %w", ErrNotStored, err)
		}
	}
}

// try sends a commit once, on condition that the journal ends where the writer believes.
func (w *Writer) try(ctx context.Context, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	msg := nats.NewMsg(streams.JournalSubject(w.group))
	msg.Data = data
	jsapi.ExpectEnd(msg, w.end)
	_, err := jsapi.Append(ctx, w.journal.cfg.Conn, msg)
	return err
}

// storedID returns the id of the commit that has the sequence of the writer's next one. It is
// jsapi.ErrNotFound while that commit is still being stored.
func (w *Writer) storedID(ctx context.Context) (id commitID, err error) {
	msg, err := w.journal.api.Get(ctx, streams.JournalStream(w.group), w.end+1)
	if err != nil {
		return id, err
	}
	if len(msg.Data) < 1+len(id) || msg.Data[0] != formatVersion {
		return id, nil // not from a writer that this program knows
	}
	copy(id[:], msg.Data[1:])
	return id, nil
}
