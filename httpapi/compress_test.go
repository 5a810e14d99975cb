package httpapi

import (
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// decoded returns an answer's body without its content coding.
func decoded(t *testing.T, a answer) string {
	t.Helper()
	var from io.Reader
	var err error
	switch coding := a.Header.Get("Content-Encoding"); coding {
	case "":
		return a.body
	case "gzip":
		from, err = gzip.NewReader(strings.NewReader(a.body))
	case "zstd":
		from, err = zstd.NewReader(strings.NewReader(a.body))
	default:
		t.Fatalf("got the content coding %q", coding)
	}
	var body []byte
	if err == nil {
		body, err = io.ReadAll(from)
	}
	if err != nil {
		t.Fatalf("got %v, want a complete body", err)
	}
	return string(body)
}

// Pages, in one part and in several, are compressed as the client asks and are the same pages. Short
// answers and what a POST shows are not compressed.
func TestCompression(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.emit(400, 500)
	for _, tt := range []struct{ path, accepts, want string }{
		{eventsPath + "?limit=50", "gzip", "gzip"},
		{eventsPath + "?limit=50", "gzip, zstd", "zstd"},
		{eventsPath + "?limit=50", "identity, zstd;q=0", ""},
		{eventsPath + "?limit=500", "gzip", "gzip"},
		{eventsPath + "?limit=500", "zstd", "zstd"},
		{eventsPath + "?limit=500", "br", ""},
		{eventsPath + "?limit=1", "gzip", ""},
	} {
		plain := s.do("GET", tt.path, "", "Accept-Encoding", "identity")
		got := s.do("GET", tt.path, "", "Accept-Encoding", tt.accepts)
		if coding := got.Header.Get("Content-Encoding"); coding != tt.want ||
			got.Header.Get("Vary") != "Accept-Encoding" || decoded(t, got) != plain.body {
			t.Errorf(
				"%s for %q: got the coding %q, Vary %q and %d bytes, want %q and the page of %d bytes", tt.path,
				tt.accepts, coding, got.Header.Get("Vary"), len(got.body), tt.want, len(plain.body),
			)
		}
		if tt.want != "" && len(got.body)*5 > len(plain.body) {
			t.Errorf("%s: got %d bytes of %d", tt.path, len(got.body), len(plain.body))
		}
		length := got.Header.Get("Content-Length")
		if length != "" && length != strconv.Itoa(len(got.body)) {
			t.Errorf("%s: got Content-Length %s of %d bytes", tt.path, length, len(got.body))
		}
	}
	long := `{"name":"` + strings.Repeat("n", 190) + `","` + strings.Repeat("x", 2000) + `":1}`
	if got := s.do("POST", "/v1/sites", long, "Accept-Encoding", "gzip"); got.StatusCode != 400 ||
		got.Header.Get("Content-Encoding") != "" || got.Header.Get("Vary") != "" {
		t.Errorf("a POST: got %d %v, want an answer as it is", got.StatusCode, got.Header)
	}
}

// Where nothing may be compressed at the moment, pages go out as they are, and a page in several
// parts holds no more memory afterwards than before.
func TestCompressionWithoutRoom(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.ResponseBytes, c.ResponseBytesPerKey = 1<<20, 512<<10 })
	s.emit(400, 500)
	slots := s.api.api.compressors.slots
	for range cap(slots) {
		slots <- struct{}{}
	}
	for _, limit := range []string{"50", "500"} {
		a := s.do("GET", eventsPath+"?limit="+limit, "", "Accept-Encoding", "gzip")
		if a.StatusCode != 200 || a.Header.Get("Content-Encoding") != "" {
			t.Errorf("limit %s: got %d %v, want a page as it is", limit, a.StatusCode, a.Header)
		}
	}
	for range cap(slots) {
		<-slots
	}
	s = start(t, nil)
	s.emit(400, 500)
	s.do("GET", eventsPath+"?limit=500", "", "Accept-Encoding", "zstd")
	if got := s.reserved(); got != 0 {
		t.Errorf("got %d reserved bytes after the page, want none", got)
	}
}
