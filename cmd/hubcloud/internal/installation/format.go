package installation

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// formatKey is the key of the format in the bucket `installation`.
const formatKey = "format"

// ErrNewerFormat reports a broker whose streams have a newer format than the program reads.
var ErrNewerFormat = errors.New("the broker's streams have a newer format")

// Format is the format of the streams on an external broker, which no data directory records. The
// numbers are those of datadir.Format.
type Format struct {
	Format int `json:"format"`
	// Version is the version of the program that first wrote this format.
	Version string `json:"version"`
}

// CheckFormat returns ErrNewerFormat if the broker has a newer format than own, which is the newest
// that this program reads. A broker that no replica has used has no record. CheckFormat writes
// nothing.
func CheckFormat(ctx context.Context, cloud *nats.Conn, own Format) error {
	found, _, err := readFormat(ctx, cloud)
	if errors.Is(err, jsapi.ErrNoStream) {
		return nil
	}
	return errors.Join(err, found.readableBy(own))
}

// RecordFormat records own as the broker's format, unless the broker has that format already. The
// error is ErrNewerFormat if a newer program was faster. RecordFormat must follow CheckFormat, and
// come before anything that an earlier program could misread.
func RecordFormat(ctx context.Context, cloud *nats.Conn, own Format) error {
	for {
		found, revision, err := readFormat(ctx, cloud)
		if err := errors.Join(err, found.readableBy(own)); err != nil {
			return err
		}
		if revision > 0 && found.Format == own.Format {
			return nil
		}
		_, err = jsapi.NewBucket(cloud, streams.InstallationBucket).
			CompareAndSetJSON(ctx, formatKey, own, revision)
		if !errors.Is(err, jsapi.ErrConflict) {
			return err
		}
	}
}

// readFormat returns the recorded format and its revision, 0 without a record.
func readFormat(ctx context.Context, cloud *nats.Conn) (Format, uint64, error) {
	var found Format
	entry, err := jsapi.NewBucket(cloud, streams.InstallationBucket).
		GetJSON(ctx, formatKey, &found)
	if err != nil {
		return Format{}, 0, fmt.Errorf("read the format: %w", err)
	}
	return found, entry.Revision, nil
}

// readableBy returns ErrNewerFormat if a program that reads up to own cannot read f.
func (f Format) readableBy(own Format) error {
	if f.Format <= own.Format {
		return nil
	}
	return fmt.Errorf(
		"%w: they were written by hubcloud %s, format %d; this binary (hubcloud %s) reads up to "+
			"format %d: start that version or a later one",
		ErrNewerFormat, f.Version, f.Format, own.Version, own.Format,
	)
}
