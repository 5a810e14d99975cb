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

// formatRecord is the content of format.json in a data directory, and the record of an external
// broker, which no data directory describes.
type formatRecord struct {
	Format int `json:"format"`
	// Version is the version of the program that wrote the directory last, or was the first to
	// write this format to the broker.
	Version string `json:"version"`
}

// CheckFormat returns ErrNewerFormat if the broker has a newer format than this program
// reads. A broker that no replica has used has no record. CheckFormat writes nothing.
func CheckFormat(ctx context.Context, cloud *nats.Conn) error {
	found, _, err := readFormat(ctx, cloud)
	if errors.Is(err, jsapi.ErrNoStream) {
		return nil
	}
	return errors.Join(err, found.readableBy(formatRecord{Format, Program().Version}))
}

// RecordFormat records the format of this program as the broker's, unless the broker has that
// format already. The error is ErrNewerFormat if a newer program was faster. RecordFormat must
// follow CheckFormat, and come before anything that an earlier program could misread.
func RecordFormat(ctx context.Context, cloud *nats.Conn) error {
	own := formatRecord{Format, Program().Version}
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
func readFormat(ctx context.Context, cloud *nats.Conn) (formatRecord, uint64, error) {
	var found formatRecord
	entry, err := jsapi.NewBucket(cloud, streams.InstallationBucket).
		GetJSON(ctx, formatKey, &found)
	if err != nil {
		return formatRecord{}, 0, fmt.Errorf("read the format: %w", err)
	}
	return found, entry.Revision, nil
}

// readableBy returns ErrNewerFormat if a program that reads up to own cannot read f.
func (f formatRecord) readableBy(own formatRecord) error {
	if f.Format <= own.Format {
		return nil
	}
	return fmt.Errorf(
		"%w: they were written by hubcloud %s, format %d; this binary (hubcloud %s) reads up to "+
			"format %d: start that version or a later one",
		ErrNewerFormat, f.Version, f.Format, own.Version, own.Format,
	)
}
