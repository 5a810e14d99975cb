package client

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// blocksOf parses a whole stream.
func blocksOf(r io.Reader) (all []block, reader *blockReader, err error) {
	reader = newBlockReader(r)
	for {
		b, err := reader.next()
		if err != nil {
			return all, reader, err
		}
		all = append(all, b)
	}
}

// A line that ends with CR ends at once: waiting for an LF would delay each event until the next.
func TestLinesThatEndWithCREndAtOnce(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	reader := newBlockReader(r)
	go io.WriteString(w, "data: x\r\n\r")
	if b, err := reader.next(); err != nil || string(b.data) != "x" {
		t.Fatalf("got block %+v, %v, want the data x", b, err)
	}
	go io.WriteString(w, "\ndata: y\n\n")
	if b, err := reader.next(); err != nil || string(b.data) != "y" {
		t.Errorf("got block %+v, %v, want the data y", b, err)
	}
}

// A line or block without end cannot fill the memory.
func TestEndlessBlocks(t *testing.T) {
	t.Parallel()
	for name, piece := range map[string]string{
		"line": "data: xxxxxxxx", "block": "data: x\n", "comments": ": x\n",
	} {
		endless := io.MultiReader(strings.NewReader(strings.Repeat(piece, 1<<20)), neverReader{t})
		if _, _, err := blocksOf(endless); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: got %v, want ErrProtocol", name, err)
		}
	}
}

// neverReader fails the test when it is read.
type neverReader struct{ t *testing.T }

func (r neverReader) Read([]byte) (int, error) {
	r.t.Error("got a read, want none")
	return 0, io.EOF
}

// Streams are parsed as section 9.2.6 of the HTML standard says: the reader agrees with the
// standard's algorithm, applied to the whole text, first lines, then fields.
func FuzzBlockReader(f *testing.F) {
	for _, seed := range []string{
		"", "id: 1\nevent: a\ndata: x\n\n", "id: 1\rdata: x\r\rdata: y\r\r",
		"id: 1\r\ndata: x\r\n\r\ndata: y\r\n\r\n", "id: 1\rdata: x\n\r\ndata: y\r\n\n",
		"\uFEFFdata: x\n\n", "\uFEFF\uFEFFdata: x\n\nid: 1\n\n", "id: 1\n\uFEFFdata: x\n\n",
		"\xEF\xBB\n\nid: 1\n\n", "id: 7\n\n", "id\n\nid:\n\n", "id: a\x00b\ndata: x\n\n",
		": keepalive\n\n:\nid: 1\n:x\n\n", "data: x\ndata\ndata:  y\n\n", "data\n\n",
		"data:x\nid:1\n\n", "data:  x\n\n", "data: a:b: c\n\n",
		"Data: x\nfoo: y\n data: z\nid: 1\n\n", "event: a\n\ndata: x\n\n",
		"data: x\n\nid: 2\ndata: y\n", "data: x\n\ndata: y", "data: x\r\n\r",
		"\n\n\r\r\r\n\n\ndata: x\n\n\n\n", "event: a\nevent: b\ndata: x\n\n",
		"id: 1\nid: 2\ndata: x\n\n", "data: \xff\n\n", "retry: 10\n\n", "\xEF\xBB\xBF",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, _, err := blocksOf(iotest.HalfReader(bytes.NewReader(text)))
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		single, _, _ := blocksOf(iotest.OneByteReader(bytes.NewReader(text)))
		if want := blocksByTheBook(string(text)); !reflect.DeepEqual(got, want) ||
			!reflect.DeepEqual(single, want) {
			t.Errorf("%q: %+v, byte by byte %+v; wanted %+v", text, got, single, want)
		}
	})
}

func blocksByTheBook(text string) (all []block) {
	text = strings.TrimPrefix(text, "\uFEFF")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	lines := strings.Split(text, "\n")
	var made block
	// text after the last line end is not a line yet
	for _, line := range lines[:len(lines)-1] {
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if made.hasID || made.hasData {
				all = append(all, made)
			}
			made = block{}
		case found && name == "":
		case name == "data":
			if made.hasData {
				made.data = append(made.data, '\n')
			}
			made.data, made.hasData = append(made.data, value...), true
		case name == "event":
			made.event = value
		case name == "id" && !strings.Contains(value, "\x00"):
			made.id, made.hasID = value, true
		}
	}
	return all
}
