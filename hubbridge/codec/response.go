package codec

import (
	"errors"

	"hubcloud/hubbridge/protocol"
)

// Response is a hub's response to a request: either Result or Error is set.
type Response struct {
	// ID is the id of the request.
	ID string
	// Result is a JSON object; nil when the response is an error.
	Result []byte
	// Error has a type; its message may be empty.
	Error protocol.Error
}

// ParseResponse decodes a response. Its errors are fit for API callers and call the response "it".
func ParseResponse(payload []byte) (Response, error) {
	f := readFields(WithoutBOM(payload), "it")
	id, result, responseError := f.nullable("id"), f.nullable("result"), f.nullable("error")
	switch {
	case f.err != nil:
		return Response{}, f.err
	case !isString(id):
		return Response{}, errors.New("it has no id")
	case (result == nil) == (responseError == nil):
		return Response{}, errors.New("it must have exactly one of result and error")
	case result != nil && result[0] != '{':
		return Response{}, errors.New("its result is not an object")
	}
	r := Response{ID: string(unescape(id)), Result: result}
	if result != nil {
		return r, nil
	}
	var err error
	r.Error, err = parseError(responseError)
	return r, err
}

// parseError decodes an error, which must have a type. A message that is not a string is ignored.
func parseError(value []byte) (protocol.Error, error) {
	f := readFields(value, "its error")
	e := protocol.Error{Type: f.text("type")}
	if message := f.nullable("message"); isString(message) {
		e.Message = text(message)
	}
	if f.err != nil || e.Type == "" {
		return protocol.Error{}, errors.New("its error has no type")
	}
	return e, nil
}
