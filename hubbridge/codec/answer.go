package codec

import "hubcloud/hubbridge/protocol"

// Answer is a hub's answer to a request: either a result or a refusal.
type Answer struct {
	// ID is the request's.
	ID string
	// Result is a JSON object, a part of what was read; nil when the hub refuses.
	Result []byte
	// Error has a type; its message may be empty.
	Error protocol.Error
}

// ParseAnswer reads an answer. The error says in words fit for an API caller why it is none.
func ParseAnswer(payload []byte) (Answer, error) {
	r := newReader(payload)
	var a Answer
	var id, refusal []byte
	ok := r.members("it", func(name []byte) (ok bool) {
		switch string(name) {
		case "id":
			id, ok = r.next()
		case "result":
			a.Result, ok = r.next()
		case "error":
			refusal, ok = r.next()
		default:
			ok = r.skip()
		}
		return ok
	})
	if err := r.end(); err != nil {
		return Answer{}, err
	}
	switch {
	case !ok:
	case len(id) == 0 || id[0] != '"':
		r.fail("it has no id")
	case (a.Result == nil) == (refusal == nil):
		r.fail("it has not exactly one of result and error")
	case a.Result == nil:
		a.Error = r.refusal(refusal)
	case a.Result[0] != '{':
		r.fail("its result is no object")
	}
	if r.flaw != nil {
		return Answer{}, r.flaw
	}
	a.ID = string(unquote(id))
	return a, nil
}

// refusal reads an error, which must have a type; without a message the type says it.
func (r *reader) refusal(text []byte) (e protocol.Error) {
	inner := newReader(text)
	if !inner.members("its error", func(name []byte) bool {
		switch {
		case string(name) == "type":
			return inner.word("type", &e.Type)
		case string(name) == "message" && inner.peek() == '"':
			return inner.word("message", &e.Message)
		}
		return inner.skip()
	}) || e.Type == "" {
		r.fail("its error is without a type")
	}
	return e
}
