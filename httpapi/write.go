package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
)

// contentTypeJSON is shared by all answers: nobody may change it.
var contentTypeJSON = []string{"application/json"}

// listBody is the contract's shape of a list.
type listBody[T any] struct {
	Data    []T  `json:"data"`
	HasMore bool `json:"has_more"`
}

// listOf makes the body of a list, each item in the form that the list shows.
func listOf[T, V any](items []T, hasMore bool, form func(T) V) listBody[V] {
	body := listBody[V]{Data: make([]V, 0, len(items)), HasMore: hasMore}
	for _, item := range items {
		body.Data = append(body.Data, form(item))
	}
	return body
}

// writeJSON answers with body as JSON.
func (x *exchange) writeJSON(status int, body any) error {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false) // names hold <, > and & as they are
	if err := encoder.Encode(body); err != nil {
		return err
	}
	x.writeBody(status, buf.Bytes())
	return nil
}

// writeBody answers with a JSON text that is ready. A client that does not take it is the client's affair.
func (x *exchange) writeBody(status int, body []byte) {
	header := x.w.Header()
	header["Content-Type"] = contentTypeJSON
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.WriteHeader(status)
	_, _ = x.Write(body)
}

// writeNothing answers 204.
func (x *exchange) writeNothing() { x.WriteHeader(http.StatusNoContent) }

// pooledBytes is the most that a buffer may hold to be kept for the next answer.
const pooledBytes = 256 << 10

// buffers are for answers that are put together from encoded events. They hold nothing between two uses.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, 0, 32<<10)
	return &buf
}

func (b *buffers) put(buf *[]byte) {
	if cap(*buf) > pooledBytes {
		return
	}
	*buf = (*buf)[:0]
	b.pool.Put(buf)
}
