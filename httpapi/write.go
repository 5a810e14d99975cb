package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"unicode/utf8"

	"hubcloud/domain"
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

// itemForm is the form of an item of a list that is asked for often: it is written by hand, into a
// buffer that answers share.
type itemForm interface {
	appendJSON(dst []byte) []byte
}

// writeList answers with a page of a list, each item in the form that the list shows.
func writeList[T any, V itemForm](x *exchange, page domain.Page[T], form func(T) V) error {
	buf := x.api.buffers.get()
	defer x.api.buffers.put(buf)
	body := append(*buf, `{"data":[`...)
	for i, item := range page.Data {
		if i > 0 {
			body = append(body, ',')
		}
		body = form(item).appendJSON(body)
	}
	body = strconv.AppendBool(append(body, `],"has_more":`...), page.HasMore)
	*buf = append(body, "}\n"...)
	if err := x.Reserve(len(*buf)); err != nil {
		return err
	}
	x.writeBody(http.StatusOK, *buf)
	return nil
}

// appendText appends a JSON string. Most texts are themselves between quotation marks.
func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return append(dst, encoded(s)...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

func appendNullableText(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	return appendText(dst, *s)
}

// encoded gives a text in JSON. A text always has one.
func encoded(s string) []byte {
	var buf bytes.Buffer
	if err := jsonEncoder(&buf).Encode(s); err != nil {
		panic(fmt.Sprintf("httpapi: %q has no JSON: %v", s, err))
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// writeJSON answers with body as JSON.
func (x *exchange) writeJSON(status int, body any) error {
	var buf bytes.Buffer
	if err := jsonEncoder(&buf).Encode(body); err != nil {
		return err
	}
	if err := x.Reserve(buf.Len()); err != nil {
		return err
	}
	x.writeBody(status, buf.Bytes())
	return nil
}

// jsonEncoder writes names that hold <, > and & as they are.
func jsonEncoder(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

// writeBody answers with a JSON text that is ready. A client that does not take it is the client's
// affair.
func (x *exchange) writeBody(status int, body []byte) {
	header := x.w.Header()
	header["Content-Type"] = contentTypeJSON
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.WriteHeader(status)
	_, _ = x.Write(body) // see above
}

// writeNothing answers 204.
func (x *exchange) writeNothing() { x.WriteHeader(http.StatusNoContent) }

// pooledBytes is the most that a buffer may hold to be kept for the next answer.
const pooledBytes = 256 << 10

// buffers are for answers that are put together by hand. They hold nothing between two uses.
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
