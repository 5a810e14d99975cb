package backup

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"

	"hubcloud/streams"
	"hubcloud/streams/broker"
)

// DirectoryMessages calls found with all messages of the DIRECTORY in a backup, in their order.
// Check must have read the backup without an error.
func DirectoryMessages(dir string, m Manifest, found func(broker.StoredMessage)) error {
	for _, f := range m.Files {
		if f.Stream == nil || f.Stream.Name != streams.DirectoryStream {
			continue
		}
		content, err := os.Open(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil {
			return err
		}
		defer content.Close()
		return readMessages(content, found)
	}
	return fmt.Errorf("%w: it has no directory", ErrDamaged)
}

// readMessages calls found with the messages of a snapshot.
func readMessages(r io.Reader, found func(broker.StoredMessage)) error {
	entries := archive.NewReader(s2.NewReader(r))
	for first := true; ; first = false {
		entry, err := entries.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case first || entry.Sequence == 0:
			continue
		}
		body := make([]byte, entry.HeaderSize+entry.PayloadSize)
		if _, err := io.ReadFull(entries, body); err != nil {
			return err
		}
		found(broker.StoredMessage{
			Seq: entry.Sequence, Stored: time.Unix(0, entry.Timestamp).UTC(), Subject: entry.Name,
			Header: body[:entry.HeaderSize], Data: body[entry.HeaderSize:],
		})
	}
}
