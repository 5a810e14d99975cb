package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// net/http's own answers must not be recognized by their text in every write of a connection: an
// event with such a text would end a page in the middle. The test tries each alignment of the
// text with the writes, in pages and streams, and after another answer on the same connection.
func TestEventsThatLookLikeServerErrors(t *testing.T) {
	t.Parallel()
	for name, repeated := range map[string]string{
		"an expectation": "HTTP/1.1 417 ", "a bad request": "HTTP/1.1 400 Bad Request: x ",
		"a header": "HTTP/1.1 431 ", "a fault": "HTTP/1.0 505 ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			want := `{"data":[`
			s.mu.Lock()
			for i := range len(repeated) {
				seq := uint64(len(s.log) + 1)
				e := encodedEvent(seq, i)
				e.Envelope = fmt.Appendf(
					nil, `{"cursor":"c%d","type":"x","data":{"x":"%s%s"}}`, seq,
					strings.Repeat("y", i), strings.Repeat(repeated, 16<<10/len(repeated)),
				)
				e.Frame = fmt.Appendf(nil, "id: c%d\nevent: x\ndata: %s\n\n", seq, e.Envelope)
				s.log = append(s.log, e)
				want += string(e.Envelope) + ","
			}
			log := s.log
			s.mu.Unlock()
			want = strings.TrimSuffix(want, ",") +
				fmt.Sprintf(`],"next_cursor":"c%d","has_more":false}`, len(log))
			request := "GET /v1/hubs/" + string(
				hubOne,
			) + "/events?limit=500 HTTP/1.1\r\nHost: h\r\nAuthorization: " + s.bearer + "\r\n\r\n"
			conn, answers := s.raw(t, request+request+"nonsense\r\n\r\n")
			defer conn.Close()
			for range 2 {
				res, err := http.ReadResponse(answers, nil)
				streamstest.Must(t, err)
				if body, err := io.ReadAll(res.Body); res.StatusCode != 200 || err != nil ||
					string(body) != want {
					t.Fatalf(
						"status %d, %d bytes of %d, %v", res.StatusCode, len(body), len(want), err,
					)
				}
			}
			res, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatalf("answer to a request that is not HTTP: got %v, want a response", err)
			}
			body, _ := io.ReadAll(res.Body) // what is missing is no JSON
			res.Request = &http.Request{URL: &url.URL{}}
			wantError(t, answer{res, string(body)}, 400, domain.CodeInvalidRequest)

			stream := s.stream("Last-Event-Id", "c0")
			stream.expect("id: c0\n\n")
			for _, e := range log {
				stream.expect(string(e.Frame))
			}
		})
	}
}
