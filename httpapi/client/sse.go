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

// maxBlock bounds the length of a block. It is far above the longest event.
const maxBlock = 1 << 20

// errBlockTooLong ends the stream.
var errBlockTooLong = fmt.Errorf(
	"%w: a block of the event stream is longer than %d bytes", ErrProtocol, maxBlock,
)

// block is the text between two empty lines of an event stream.
type block struct {
	// id is valid if hasID. A block without data dispatches no event, but its id still moves the
	// position to resume from.
	id    string
	hasID bool
	// event is the last event field.
	event string
	// data is the data fields, joined by line feeds. It is valid if hasData.
	data    []byte
	hasData bool
}

// blockReader parses an event stream as in section 9.2.6 of the HTML standard: a byte order mark at
// the beginning is ignored; lines end with CR LF, LF or CR, and a CR ends its line at once; lines
// that begin with a colon are comments; an incomplete block at the end is dropped.
type blockReader struct {
	r *bufio.Reader
	// begun is true once a byte order mark has been looked for.
	begun bool
	// skipLF reports that the last line ended with CR: a following LF belongs to it.
	skipLF bool
	line   []byte
	// retry is the last reconnection time that the server sent, if hasRetry.
	retry    time.Duration
	hasRetry bool
}

func newBlockReader(r io.Reader) *blockReader { return &blockReader{r: bufio.NewReader(r)} }

// next returns the next block that has an id or data. The caller owns its data. The error is that
// of the stream, or errBlockTooLong.
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

// field adds one line to the block.
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
		// Digits only, as the standard says.
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			b.retry, b.hasRetry = time.Duration(ms)*time.Millisecond, true
		}
	}
}

// readLine returns the next line without its end. The line is valid until the next call.
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
			return nil, err // an incomplete line is dropped
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

// skipMark skips a byte order mark. It reads no more bytes than needed to see that there is none.
func (b *blockReader) skipMark() error {
	for n := 1; n <= len(mark); n++ {
		start, err := b.r.Peek(n)
		if errors.Is(err, io.EOF) && len(start) > 0 {
			return nil // the stream is shorter than the mark
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

// discard skips n bytes, which must be buffered.
func (b *blockReader) discard(n int) {
	_, _ = b.r.Discard(n) // buffered bytes can always be discarded
}
