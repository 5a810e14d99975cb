package codec

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"hubcloud/hubbridge/protocol"
)

// Answer is a hub's answer to a request: either Result or Error is set.
type Answer struct {
	// ID is the id of the request.
	ID string
	// Result is a JSON object; nil when the hub answered with an error.
	Result []byte
	// Error has a type; its message may be empty.
	Error protocol.Error
}

// ParseAnswer decodes an answer. Its errors are fit for API callers: they state what is wrong with
// "it", the answer.
func ParseAnswer(payload []byte) (Answer, error) {
	var id, result, answered jsontext.Value
	err := parseObject(payload, "it",
		optional("id", raw(&id)),
		optional("result", raw(&result)),
		optional("error", raw(&answered)),
	)
	switch {
	case err != nil:
		return Answer{}, err
	case id.Kind() != '"':
		return Answer{}, errors.New("it has no id")
	case (result == nil) == (answered == nil):
		return Answer{}, errors.New("it must have exactly one of result and error")
	case result != nil && result.Kind() != '{':
		return Answer{}, errors.New("its result is no object")
	}
	a := Answer{ID: string(unescape(id)), Result: result}
	if result == nil {
		a.Error, err = parseError(answered)
	}
	return a, err
}

// parseError decodes an error, which must have a type. A message that is no string is ignored.
func parseError(text []byte) (e protocol.Error, err error) {
	err = parseObject(text, "its error",
		required("type", stringInto(&e.Type)),
		optional("message", stringIfAny(&e.Message)),
	)
	if err != nil || e.Type == "" {
		return protocol.Error{}, errors.New("its error has no type")
	}
	return e, nil
}
