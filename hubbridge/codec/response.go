package codec

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

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
	var id, result, responseError jsontext.Value
	err := parseObject(WithoutBOM(payload), "it",
		optional("id", rawInto(&id)),
		optional("result", rawInto(&result)),
		optional("error", rawInto(&responseError)),
	)
	switch {
	case err != nil:
		return Response{}, err
	case id.Kind() != '"':
		return Response{}, errors.New("it has no id")
	case (result == nil) == (responseError == nil):
		return Response{}, errors.New("it must have exactly one of result and error")
	case result != nil && result.Kind() != '{':
		return Response{}, errors.New("its result is not an object")
	}
	r := Response{ID: string(unescape(id)), Result: result}
	if result == nil {
		r.Error, err = parseError(responseError)
	}
	return r, err
}

// parseError decodes an error, which must have a type. A message that is not a string is ignored.
func parseError(text []byte) (e protocol.Error, err error) {
	err = parseObject(text, "its error",
		required("type", stringInto(&e.Type)),
		optional("message", stringOrSkipInto(&e.Message)),
	)
	if err != nil || e.Type == "" {
		return protocol.Error{}, errors.New("its error has no type")
	}
	return e, nil
}
