package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

var (
	// ErrNotEmpty reports that the broker has an installation already. Nothing was changed.
	ErrNotEmpty = errors.New("the broker has an installation already")
	// ErrRestoring reports that a restore into the broker is running or was interrupted.
	ErrRestoring = errors.New("a restore into the broker was not finished")
	// errOvertaken reports that another restore into the broker has begun.
	errOvertaken = errors.New("another restore into the same broker has begun in the meantime")
)

// markerStream exists from the beginning of a restore to its end. Its last message is the id of the
// restore.
const (
	markerStream  = "RESTORE"
	markerSubject = "restore.begun"
)

// Unfinished returns ErrRestoring for a broker with a running or interrupted restore. A service
// must not start on that broker.
func Unfinished(ctx context.Context, conns *streams.Conns) error {
	_, err := jsapi.New(conns.Cloud).Info(ctx, markerStream)
	switch {
	case errors.Is(err, jsapi.ErrNoStream):
		return nil
	case err == nil:
		return fmt.Errorf("%w: run `hubcloud restore` again, it starts over", ErrRestoring)
	default:
		return fmt.Errorf("look for an unfinished restore: %w", err)
	}
}

// marker marks a broker for one restore.
type marker struct {
	api jsapi.API
	id  string
}

// setMarker marks a broker that is empty, or that has an interrupted restore, and deletes the
// streams of the interrupted restore. Any other broker is ErrNotEmpty.
func setMarker(ctx context.Context, conns *streams.Conns, replicas int) (*marker, error) {
	existing, err := existingStreams(ctx, conns)
	if err != nil {
		return nil, err
	}
	if len(existing) > 0 && !slices.Contains(existing, markerStream) {
		return nil, fmt.Errorf(
			"%w (stream %s): restore into an empty broker", ErrNotEmpty, existing[0],
		)
	}
	m := &marker{api: jsapi.New(conns.Cloud), id: rand.Text()}
	if err := m.store(ctx, replicas); err != nil {
		return nil, fmt.Errorf("mark the broker: %w", err)
	}
	for _, name := range existing {
		if name == markerStream {
			continue
		}
		if err := m.api.Delete(ctx, name); err != nil {
			return nil, fmt.Errorf("delete stream %s of the last restore: %w", name, err)
		}
	}
	return m, nil
}

func (m *marker) store(ctx context.Context, replicas int) error {
	js, err := jetstream.New(m.api.Conn())
	if err != nil {
		return err
	}
	err = jsapi.SetUp(ctx, func(ctx context.Context) error {
		_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: markerStream, Subjects: []string{markerSubject}, Storage: jetstream.FileStorage,
			Replicas: replicas, MaxMsgs: 1,
			Description: "a restore was begun and not finished",
		})
		return err
	})
	if err == nil {
		_, err = js.Publish(ctx, markerSubject, []byte(m.id))
	}
	return err
}

// remove ends the restore. The error is errOvertaken if another restore has begun since.
func (m *marker) remove(ctx context.Context) error {
	last, err := m.api.GetLast(ctx, markerStream, markerSubject)
	if errors.Is(err, jsapi.ErrNoStream) || errors.Is(err, jsapi.ErrNotFound) {
		return fmt.Errorf("%w: %w", errOvertaken, err)
	}
	if err != nil {
		return fmt.Errorf("read the broker's mark: %w", err)
	}
	if string(last.Data) != m.id {
		return errOvertaken
	}
	return m.api.Delete(ctx, markerStream)
}

// existingStreams returns the names of the streams of an installation and of an unfinished restore.
// Other streams on the broker do not count.
func existingStreams(ctx context.Context, conns *streams.Conns) ([]string, error) {
	known := append(
		[]string{markerStream, streams.DirectoryStream, streams.BookStream, mailStream}, streams.BucketStreams()...,
	)
	names, err := jsapi.New(conns.Cloud).Names(ctx)
	return slices.DeleteFunc(names, func(name string) bool {
		return !isJournal(name) && !slices.Contains(known, name)
	}), err
}
