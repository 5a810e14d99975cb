package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
)

// net/http rejects some requests before it calls a handler: malformed HTTP, a header that is too
// large, an unknown transfer coding, version or expectation. It writes those answers itself, while
// no handler runs on the connection; that is how conn recognizes them, whatever their text. conn
// writes the API's answer instead, with the contract's error body, a request id and the rate limit
// of the client's address.

// parseServerError parses the status line of an answer that net/http wrote by itself, which it does
// in one write. It returns false for anything else, such as frames of HTTP/2.
func parseServerError(p []byte) (status int, reason string, ok bool) {
	rest, ok := bytes.CutPrefix(p, []byte("HTTP/1."))
	if !ok || len(rest) < len("1 400") || rest[2] != '4' && rest[2] != '5' {
		return 0, "", false
	}
	line, _, _ := bytes.Cut(rest[2:], []byte("\r\n"))
	status, err := strconv.Atoi(string(line[:3]))
	if err != nil {
		return 0, "", false
	}
	if _, given, found := bytes.Cut(line, []byte(": ")); found {
		reason = string(given)
	}
	return status, reason, true
}

// unparsedError returns the API's error for a request that net/http rejected. What net/http reports
// as a fault of the server (501, 505) is an invalid request here: the contract says what is
// accepted.
func unparsedError(status int, reason string) error {
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		return response.WithStatus(status, domain.Errorf(
			domain.CodeInvalidRequest, "header: must be at most %d bytes, including the path",
			maxHeaderBytes,
		))
	case http.StatusExpectationFailed:
		return response.WithStatus(status, domain.Errorf(domain.CodeInvalidRequest, "Expect: must be 100-continue"))
	case http.StatusNotImplemented:
		return invalid("Transfer-Encoding: must be chunked")
	case http.StatusHTTPVersionNotSupported:
		return invalid("request: must be HTTP/1.1 or HTTP/1.0")
	}
	if reason == "" {
		reason = "must be well-formed HTTP"
	}
	return invalid("request: %s", reason)
}

// encodeRejection returns the answer to a connection without a parsed request, as the bytes to
// write, and logs and counts it. The answer is 429 if the address has used up its rate limit.
func (a *api) encodeRejection(remote string, err error) []byte {
	w := &responseBuffer{header: http.Header{"Connection": {"close"}}}
	req := a.begin(w, &http.Request{RemoteAddr: remote})
	req.route = a.unparsed
	if limited := req.countForAddress(); limited != nil {
		err = limited
	}
	req.writeError(err)
	req.report()
	w.header["Date"] = []string{req.start.UTC().Format(http.TimeFormat)}
	return w.encode()
}

// responseBuffer is an http.ResponseWriter that keeps the answer.
type responseBuffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *responseBuffer) Header() http.Header         { return w.header }
func (w *responseBuffer) WriteHeader(status int)      { w.status = status }
func (w *responseBuffer) Write(p []byte) (int, error) { return w.body.Write(p) }

// encode returns the answer as HTTP/1.1.
func (w *responseBuffer) encode() []byte {
	var raw bytes.Buffer
	fmt.Fprintf(&raw, "HTTP/1.1 %d %s\r\n", w.status, http.StatusText(w.status))
	_ = w.header.Write(&raw) // a bytes.Buffer never fails
	raw.WriteString("\r\n")
	raw.Write(w.body.Bytes())
	return raw.Bytes()
}
