package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

var (
	// ErrNotEmpty says that the broker holds an installation already. Nothing was touched.
	ErrNotEmpty = errors.New("the broker holds an installation already")
	// ErrRestoring says that a restore into the broker was begun and not finished: what it holds is
	// no installation yet.
	ErrRestoring = errors.New("a restore into the broker was not finished")
	// errOvertaken says that another restore has begun since.
	errOvertaken = errors.New("another restore into the same broker has begun in the meantime")
)

// markStream is there from the beginning of a restore to its end. Its last message names the
// restore.
const (
	markStream  = "RESTORE"
	markSubject = "restore.begun"
)

// Unfinished returns ErrRestoring for a broker with a restore under way, or one that was
// interrupted. A service must not start on it.
func Unfinished(ctx context.Context, conns *streams.Conns) error {
	_, err := jsapi.New(conns.Cloud).Info(ctx, markStream)
	switch {
	case errors.Is(err, jsapi.ErrNoStream):
		return nil
	case err == nil:
		return fmt.Errorf(
			"%w: run `hubcloud restore` again, it begins from the start", ErrRestoring,
		)
	default:
		return fmt.Errorf("look for a restore that was not finished: %w", err)
	}
}

// mark is the claim of one restore on a broker.
type mark struct {
	js jetstream.JetStream
	id string
}

// claim marks an empty broker, or one with what an interrupted restore has left, which is removed.
func claim(ctx context.Context, conns *streams.Conns, replicas int) (*mark, error) {
	found, err := installed(ctx, conns)
	if err != nil {
		return nil, err
	}
	marked := false
	for _, s := range found {
		marked = marked || s.name == markStream && s.nc == conns.Cloud
	}
	if len(found) > 0 && !marked {
		return nil, fmt.Errorf(
			"%w: it has the stream %s. Restore into an empty one", ErrNotEmpty, found[0].name,
		)
	}
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		return nil, err
	}
	m := &mark{js: js, id: nuid.Next()}
	_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: markStream, Subjects: []string{markSubject}, Storage: jetstream.FileStorage,
		Replicas: replicas, MaxMsgs: 1,
		Description: "a restore was begun and not finished",
	})
	if err == nil {
		_, err = js.Publish(ctx, markSubject, []byte(m.id))
	}
	if err != nil {
		return nil, fmt.Errorf("mark the broker: %w", err)
	}
	for _, s := range found {
		if s.name == markStream {
			continue
		}
		if err := jsapi.New(s.nc).Delete(ctx, s.name); err != nil {
			return nil, fmt.Errorf("remove what the last restore has left of %s: %w", s.name, err)
		}
	}
	return m, nil
}

// lift ends the restore, if no other one has begun since.
func (m *mark) lift(ctx context.Context) error {
	stream, err := m.js.Stream(ctx, markStream)
	if err != nil {
		return fmt.Errorf("%w: %w", errOvertaken, err)
	}
	last, err := stream.GetLastMsgForSubject(ctx, markSubject)
	if err != nil {
		return err
	}
	if string(last.Data) != m.id {
		return errOvertaken
	}
	return m.js.DeleteStream(ctx, markStream)
}

// place is a stream where it was found.
type place struct {
	nc   *nats.Conn
	name string
}

// installed finds the streams of an installation: those of the directory, mails and buckets, the
// hub logs, and the mark. What else an operator keeps on the broker is none of it.
func installed(ctx context.Context, conns *streams.Conns) (found []place, err error) {
	own := append(
		[]string{markStream, streams.DirectoryStream, mailStream},
		streams.BucketStreams()...)
	names, err := jsapi.New(conns.Cloud).Names(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if slices.Contains(own, name) {
			found = append(found, place{conns.Cloud, name})
		}
	}
	for _, nc := range conns.Shards {
		names, err := jsapi.New(nc).Names(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if isHubLog(name) {
				found = append(found, place{nc, name})
			}
		}
	}
	return found, nil
}
