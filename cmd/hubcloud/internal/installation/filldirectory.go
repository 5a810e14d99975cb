package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/backup"
	"hubcloud/streams/broker"
	"hubcloud/streams/directory"
)

// FillDirectory fills the holes of the directory in the store of a stopped broker, or puts back a
// directory that is gone.
type FillDirectory struct {
	// Store is the folder with the server's streams. External reports that it is the store of a
	// nats-server of the operator's own.
	Store    string
	External bool
	// Source is a backup, or a copy of a broker's store or of the stream's folder; "" for none.
	Source string
	// AcceptLoss records the loss of what Source does not have.
	AcceptLoss bool
	Logger     *slog.Logger
}

// Filled is what FillDirectory has done: the sequences of the events that were restored, and the
// sequences whose loss is recorded. Gone reports that the whole directory was put back.
type Filled struct {
	Restored []uint64 `json:"restored"`
	Lost     []uint64 `json:"lost"`
	Gone     bool     `json:"gone"`
}

// directoryFolder is the folder of the directory in a broker's store.
var directoryFolder = filepath.Join(
	"jetstream", string(streams.AccountCloud), "streams", streams.DirectoryStream,
)

// Run fills the holes. After an error nothing has changed.
func (f FillDirectory) Run(ctx context.Context) (Filled, error) {
	filled := Filled{Restored: []uint64{}, Lost: []uint64{}}
	folder := filepath.Join(f.Store, directoryFolder)
	if _, err := os.Stat(f.Store); err != nil {
		return filled, fmt.Errorf("there is no directory to be repaired: %w", err)
	}
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return f.putBack(ctx)
	}
	if err := broker.Repair(f.Store, f.Logger); err != nil {
		return filled, err
	}
	holes, err := broker.HolesIn(folder)
	if err != nil || len(holes) == 0 {
		return filled, err
	}
	found, err := f.read(ctx, folder, holes)
	if err != nil {
		return filled, err
	}
	stored := map[uint64]time.Time{}
	for _, hole := range holes {
		for seq := hole.From; seq <= hole.To; seq++ {
			stored[seq] = hole.Before
			if _, ok := found[seq]; ok {
				filled.Restored = append(filled.Restored, seq)
			} else {
				filled.Lost = append(filled.Lost, seq)
			}
		}
	}
	if len(filled.Lost) > 0 && !f.AcceptLoss {
		return filled, fmt.Errorf(
			"%d of %d lost events of the directory are not in %q, the first with the sequence %d: give "+
				"a newer copy, or --accept-loss as well", len(filled.Lost),
			len(filled.Lost)+len(filled.Restored), f.Source, filled.Lost[0],
		)
	}
	origin := OperatorOrigin()
	return filled, broker.Fill(folder, func(seq uint64) (broker.StoredMessage, error) {
		if m, ok := found[seq]; ok {
			return m, nil
		}
		data, err := directory.EncodeLost(origin, seq)
		m := broker.StoredMessage{
			Seq: seq, Stored: stored[seq], Subject: streams.LostSubject, Data: data,
		}
		if m.Stored.IsZero() {
			m.Stored = origin.At
		}
		return m, err
	})
}

// read returns the messages of the source that the holes lack. The messages before and behind each
// hole must equal the source's, as far as it has them: it must be a copy of the same directory.
func (f FillDirectory) read(
	ctx context.Context, folder string, holes []broker.Hole,
) (found map[uint64]broker.StoredMessage, err error) {
	found = map[uint64]broker.StoredMessage{}
	if f.Source == "" {
		return found, nil
	}
	lost, beside := map[uint64]bool{}, map[uint64]bool{}
	for _, hole := range holes {
		for seq := hole.From; seq <= hole.To; seq++ {
			lost[seq] = true
		}
		beside[hole.From-1], beside[hole.To+1] = true, true
	}
	own := map[uint64]broker.StoredMessage{}
	if err := broker.ReadMessages(folder, func(m broker.StoredMessage) {
		if beside[m.Seq] {
			own[m.Seq] = m
		}
	}); err != nil {
		return nil, err
	}
	same := true
	err = f.readSource(ctx, func(m broker.StoredMessage) {
		if lost[m.Seq] {
			found[m.Seq] = m
		}
		if mine, ok := own[m.Seq]; ok {
			same = same && mine.Equal(m)
		}
	})
	if err == nil && !same {
		err = fmt.Errorf("%s is not a copy of this directory: its events are others", f.Source)
	}
	return found, err
}

// readSource reads a backup, the store of a broker, or the folder of the stream.
func (f FillDirectory) readSource(ctx context.Context, found func(broker.StoredMessage)) error {
	for _, folder := range []string{
		f.Source, filepath.Join(f.Source, directoryFolder),
		filepath.Join(f.Source, "durable", directoryFolder),
		filepath.Join(f.Source, "nats", "durable", directoryFolder),
	} {
		if filepath.Base(folder) != streams.DirectoryStream {
			continue
		}
		err := broker.ReadMessages(folder, found)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	manifest, err := backup.Check(ctx, f.Source, Format, nil)
	if err != nil {
		return fmt.Errorf("%s is neither a backup nor a copy of a broker's store: %w", f.Source, err)
	}
	return backup.DirectoryMessages(f.Source, manifest, found)
}
