package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// maxBlock is the longest block of an event stream that is read, far above the longest event: a
// line without end must not fill the memory.
const maxBlock = 1 << 20

// errBlockTooLong ends the reading of a stream.
var errBlockTooLong = fmt.Errorf(
	"%w: a block of the event stream is longer than %d bytes", ErrProtocol, maxBlock,
)

// block is what stands between two empty lines of an event stream.
type block struct {
	// id counts when hasID. A block without data dispatches nothing, but its id still moves the
	// place to resume from.
	id    string
	hasID bool
	// event is the last event field.
	event string
	// data is the data fields, joined by line feeds. It counts when hasData.
	data    []byte
	hasData bool
}

// blockReader takes an event stream apart, as section 9.2.6 of the HTML standard has it: a byte
// order mark at the very beginning is passed over; lines end with CR LF, LF or CR, and a CR ends
// its line at once, without waiting for what follows; lines that begin with a colon are comments; a
// block that the stream ends within is dropped.
type blockReader struct {
	r *bufio.Reader
	// begun is false until the place of the byte order mark is behind.
	begun bool
	// skipLF says that the last line ended with CR: an LF that comes next belongs to it.
	skipLF bool
	line   []byte
	// retry is the last time to wait before the next connection that the server asked for; hasRetry
	// when it did.
	retry    time.Duration
	hasRetry bool
}

func newBlockReader(r io.Reader) *blockReader { return &blockReader{r: bufio.NewReader(r)} }

// next gives the next block that has an id or data. Its data is the caller's. The error is that of
// the stream, or errBlockTooLong.
func (b *blockReader) next() (block, error) {
	var made block
	size := 0
	for {
		line, err := b.readLine()
		if err != nil {
			return block{}, err
		}
		if len(line) == 0 {
			if made.hasID || made.hasData {
				return made, nil
			}
			made, size = block{}, 0
			continue
		}
		if size += len(line); size > maxBlock {
			return block{}, errBlockTooLong
		}
		b.field(&made, line)
	}
}

// field takes one line into the block.
func (b *blockReader) field(made *block, line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if made.hasData {
			made.data = append(made.data, '\n')
		}
		made.data, made.hasData = append(made.data, value...), true
	case "event":
		made.event = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			made.id, made.hasID = string(value), true
		}
	case "retry":
		// takes digits only, as the standard does
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			b.retry, b.hasRetry = time.Duration(ms)*time.Millisecond, true
		}
	}
}

// readLine gives the next line without its end. It is good until the next call.
func (b *blockReader) readLine() ([]byte, error) {
	if !b.begun {
		b.begun = true
		if err := b.skipMark(); err != nil {
			return nil, err
		}
	}
	b.line = b.line[:0]
	for {
		if _, err := b.r.Peek(1); err != nil {
			return nil, err // what is there of the line is dropped
		}
		there, _ := b.r.Peek(b.r.Buffered())
		if b.skipLF {
			b.skipLF = false
			if there[0] == '\n' {
				b.discard(1)
				continue
			}
		}
		end := bytes.IndexAny(there, "\r\n")
		if end >= 0 {
			b.line = append(b.line, there[:end]...)
			b.skipLF = there[end] == '\r'
			b.discard(end + 1)
			return b.line, nil
		}
		b.line = append(b.line, there...)
		b.discard(len(there))
		if len(b.line) > maxBlock {
			return nil, errBlockTooLong
		}
	}
}

// mark is the byte order mark in UTF-8.
var mark = []byte("\uFEFF")

// skipMark passes over a byte order mark, and waits for no byte more than it takes to see that
// there is none.
func (b *blockReader) skipMark() error {
	for n := 1; n <= len(mark); n++ {
		start, err := b.r.Peek(n)
		if errors.Is(err, io.EOF) && len(start) > 0 {
			return nil // a stream shorter than a mark
		}
		if err != nil {
			return err
		}
		if start[n-1] != mark[n-1] {
			return nil
		}
	}
	b.discard(len(mark))
	return nil
}

// discard passes over n bytes that are buffered, which cannot fail.
func (b *blockReader) discard(n int) { _, _ = b.r.Discard(n) } // they are there
