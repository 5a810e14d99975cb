package outbox

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// ErrConflict is returned by Put when another process has written the record.
var ErrConflict = jsapi.ErrConflict

const (
	recordPrefix   = "org."
	keyBegun       = "begun"
	keyUnsubscribe = "unsubscribe-key"
	// maxRecord bounds a record that is decompressed.
	maxRecord = 64 << 20
)

// AlarmRecords are the records of what was mailed about conditions, one for each organization, in
// the bucket `alarm-mails`, and the key of the links that end these mails. The content of a record
// is opaque. They are safe for concurrent use.
type AlarmRecords struct{ bucket jsapi.Bucket }

// OpenAlarmRecords returns the records. The bucket must exist: see streams.OpenBuckets.
func OpenAlarmRecords(cloud *nats.Conn) *AlarmRecords {
	return &AlarmRecords{jsapi.NewBucket(cloud, streams.AlarmMailsBucket)}
}

// AlarmRecord is a record with the revision that Put expects; 0 for one that is not stored yet.
type AlarmRecord struct {
	Content  []byte
	Revision uint64
}

// Begun reports whether mails about conditions have begun. Before, conditions stand that nobody was
// mailed about.
func (s *AlarmRecords) Begun(ctx context.Context) (bool, error) {
	e, err := s.bucket.Get(ctx, keyBegun)
	return e.Exists(), err
}

// Begin records that mails about conditions have begun.
func (s *AlarmRecords) Begin(ctx context.Context) error {
	_, err := s.once(ctx, keyBegun, func() []byte { return []byte("1") })
	return err
}

// UnsubscribeKey returns the key of the links that end mails, and creates it if there is none. A
// temporary fault is a domain.Unavailable.
func (s *AlarmRecords) UnsubscribeKey(ctx context.Context) (key domain.UnsubscribeKey, err error) {
	stored, err := s.once(ctx, keyUnsubscribe, func() []byte {
		var fresh domain.UnsubscribeKey
		rand.Read(fresh[:]) // never fails: it ends the program instead
		return fresh[:]
	})
	if err != nil {
		return key, jsapi.Unavailable(err, "the link cannot be checked at the moment; try again later")
	}
	if len(stored) != len(key) {
		return key, errors.New("alarm mails: the unsubscribe key has another length")
	}
	return domain.UnsubscribeKey(stored), nil
}

// once returns the value of a key, and sets it first if there is none.
func (s *AlarmRecords) once(
	ctx context.Context, key string, create func() []byte,
) ([]byte, error) {
	for {
		e, err := s.bucket.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if e.Exists() {
			return e.Value, nil
		}
		value := create()
		if _, err = s.bucket.CompareAndSet(ctx, key, value, nil, e.Revision); err == nil {
			return value, nil
		}
		if !errors.Is(err, jsapi.ErrConflict) {
			return nil, err
		}
	}
}

// All returns the records of all organizations, by organization.
func (s *AlarmRecords) All(ctx context.Context) (map[string]AlarmRecord, error) {
	entries, err := s.bucket.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("alarm mails: %w", err)
	}
	all := map[string]AlarmRecord{}
	for _, e := range entries {
		org, ok := strings.CutPrefix(e.Key, recordPrefix)
		if !ok || !e.Exists() {
			continue
		}
		content, err := decompress(e.Value)
		if err != nil {
			return nil, fmt.Errorf("alarm mails: record of organization %s: %w", org, err)
		}
		all[org] = AlarmRecord{content, e.Revision}
	}
	return all, nil
}

// Put stores a record of an organization and returns its new revision. It returns ErrConflict if
// the stored record has another revision. After any other error the record may be stored.
func (s *AlarmRecords) Put(
	ctx context.Context, org string, r AlarmRecord,
) (revision uint64, err error) {
	return s.bucket.CompareAndSet(ctx, recordPrefix+org, compress(r.Content), nil, r.Revision)
}

func compress(content []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(content) // a buffer returns no errors
	w.Close()
	return out.Bytes()
}

func decompress(content []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxRecord))
}
