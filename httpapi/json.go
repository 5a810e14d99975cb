package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"

	"hubcloud/domain"
)

// contentTypeJSON is shared by all answers and must not be modified.
var contentTypeJSON = []string{"application/json"}

// listBody is the contract's shape of a list.
type listBody[T any] struct {
	Data    []T  `json:"data"`
	HasMore bool `json:"has_more"`
}

// listOf returns the body of a page of a list; form converts each item.
func listOf[T, V any](page domain.Page[T], form func(T) V) listBody[V] {
	body := listBody[V]{Data: make([]V, 0, len(page.Data)), HasMore: page.HasMore}
	for _, item := range page.Data {
		body.Data = append(body.Data, form(item))
	}
	return body
}

// writeJSON answers with body as JSON.
func (req *request) writeJSON(status int, body any) error {
	var buf bytes.Buffer
	if err := jsonEncoder(&buf).Encode(body); err != nil {
		return err
	}
	if err := req.Reserve(buf.Len()); err != nil {
		return err
	}
	req.writeBody(status, buf.Bytes())
	return nil
}

// jsonEncoder returns an encoder that does not escape <, > and &.
func jsonEncoder(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

// writeBody answers with encoded JSON. It ignores write errors: the client has gone.
func (req *request) writeBody(status int, body []byte) {
	header := req.w.Header()
	header["Content-Type"] = contentTypeJSON
	body, done := req.compressWhole(status, body)
	defer done()
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	req.WriteHeader(status)
	_, _ = req.Write(body) // fails only if the client has gone
}

// answer answers with body as JSON, unless there is an error.
func (req *request) answer(status int, body any, err error) error {
	if err != nil {
		return err
	}
	return req.writeJSON(status, body)
}

// answerNothing answers 204, unless there is an error.
func (req *request) answerNothing(err error) error {
	if err == nil {
		req.WriteHeader(http.StatusNoContent)
	}
	return err
}

// maxPooledBytes is the largest capacity of a buffer that is kept for reuse.
const maxPooledBytes = 256 << 10

// buffers is a pool of buffers for answers that are encoded by hand.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, 0, 32<<10)
	return &buf
}

func (b *buffers) put(buf *[]byte) {
	if cap(*buf) > maxPooledBytes {
		return
	}
	*buf = (*buf)[:0]
	b.pool.Put(buf)
}
