package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"hubcloud/streams/disk"
)

// StoredMessage is a message of a stream as the server stores it.
type StoredMessage struct {
	Seq     uint64
	Stored  time.Time
	Subject string
	// Header is the encoded header, empty for none.
	Header, Data []byte
}

// Equal reports whether two messages are the same.
func (m StoredMessage) Equal(other StoredMessage) bool {
	return m.Seq == other.Seq && m.Stored.Equal(other.Stored) && m.Subject == other.Subject &&
		bytes.Equal(m.Header, other.Header) && bytes.Equal(m.Data, other.Data)
}

// decode returns the message of a record.
func (r *blockRecord) decode() StoredMessage {
	subject := int(binary.LittleEndian.Uint16(r.data[20:]))
	body := r.data[recordHeader : len(r.data)-hashSize]
	m := StoredMessage{Seq: r.seq, Stored: storedAt(r.stored), Subject: string(body[:subject])}
	m.Data = body[subject:]
	if binary.LittleEndian.Uint32(r.data)&flagHeader == 0 {
		return m
	}
	header := min(uint64(binary.LittleEndian.Uint32(m.Data)), uint64(len(m.Data)-4))
	m.Header, m.Data = m.Data[4:4+header], m.Data[4+header:]
	return m
}

// encode returns the record of a message.
func (b *block) encode(m StoredMessage) ([]byte, error) {
	if len(m.Subject) > math.MaxUint16 || len(m.Header)+len(m.Data) > maxRecord/2 {
		return nil, fmt.Errorf("message %d is too large", m.Seq)
	}
	data := make([]byte, recordHeader)
	binary.LittleEndian.PutUint64(data[4:], m.Seq)
	binary.LittleEndian.PutUint64(data[12:], uint64(m.Stored.UnixNano()))
	binary.LittleEndian.PutUint16(data[20:], uint16(len(m.Subject)))
	data = append(data, m.Subject...)
	flags := uint32(0)
	if len(m.Header) > 0 {
		flags = flagHeader
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(m.Header))), m.Header...)
	}
	data = append(data, m.Data...)
	binary.LittleEndian.PutUint32(data, uint32(len(data)+hashSize)|flags)
	return append(data, b.sum(data[4:20], []byte(m.Subject), m.Header, m.Data)...), nil
}

// ReadMessages calls found with all messages of the folder of a stream that can be read, in their
// order. It changes nothing.
func ReadMessages(folder string, found func(StoredMessage)) error {
	blocks, err := listBlocks(folder, filepath.Base(folder))
	if err != nil {
		return err
	}
	last := uint64(0)
	for _, b := range blocks {
		data, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		b.scan(data, last, func(r blockRecord) {
			if r.message {
				last = r.seq
				found(r.decode())
			}
		}, func([]byte, *blockRecord) {})
	}
	return nil
}

// Fill writes messages into the holes of a stream, from its first sequence on, of which only the
// folder is needed: the server must be stopped, and Repair must have been called for its store.
// message returns the message of a sequence. Nothing is changed if that fails.
func Fill(folder string, message func(seq uint64) (StoredMessage, error)) error {
	blocks, err := listBlocks(folder, filepath.Base(folder))
	if err != nil {
		return err
	}
	contents := make([][]byte, len(blocks))
	next, changed := uint64(1), make([]bool, len(blocks))
	for i := range blocks {
		b := &blocks[i]
		data, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		var failed error
		fill := func(before uint64) {
			for ; next < before && failed == nil; next++ {
				m, err := message(next)
				if err == nil {
					var record []byte
					record, err = b.encode(m)
					contents[i] = append(contents[i], record...)
				}
				failed, changed[i] = err, true
			}
		}
		end := uint64(0)
		b.scan(data, next-1, func(r blockRecord) {
			end = max(end, r.seq)
			if r.message {
				fill(r.seq)
				contents[i] = append(contents[i], r.data...)
				next = r.seq + 1
			}
		}, func([]byte, *blockRecord) { failed = errors.New("the store is not repaired") })
		if i == len(blocks)-1 {
			fill(end + 1)
		}
		if failed != nil {
			return failed
		}
	}
	state := filepath.Join(folder, messageFolder, stateFile)
	if err := os.Remove(state); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i, b := range blocks {
		if changed[i] {
			if err := disk.Write(b.path, contents[i], 0o640); err != nil {
				return err
			}
		}
	}
	return nil
}
