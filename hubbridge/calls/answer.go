package calls

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hubcloud/domain"
	"hubcloud/hubbridge/link"
)

const (
	// maxAnswerBytes bounds an answer: a hub with hundreds of devices fits many times.
	maxAnswerBytes = 1 << 20
	// maxMessage bounds, in bytes, what a hub may say to an API caller about an error.
	maxMessage = 300
)

// errorsOf lists the methods, and the errors that a hub may answer to each beside hub_unavailable.
func errorsOf(method string) (codes []domain.Code, ok bool) {
	switch method {
	case link.MethodDevicesGet:
		return []domain.Code{domain.CodeNotFound}, true
	case link.MethodDevicesForget:
		return []domain.Code{domain.CodeNotFound, domain.CodeInvalidRequest}, true
	case link.MethodChannelsCommand:
		return []domain.Code{domain.CodeNotFound, domain.CodeInvalidRequest, domain.CodeCommandRefused}, true
	case link.MethodPairingOpen:
		return []domain.Code{domain.CodeInvalidRequest}, true
	case link.MethodDevicesList, link.MethodPairingClose, link.MethodRemovalOpen, link.MethodRemovalClose:
		return nil, true
	}
	return nil, false
}

// decode reads a hub's answer to a request of that id into result, which may be nil. It gives the hub's refusal, or hub_error for what is no
// answer to it.
func decode(method, id string, payload []byte, result any) error {
	if len(payload) > maxAnswerBytes {
		return domain.Errorf(domain.CodeHubError, "the hub answered with %d bytes; at most %d are taken", len(payload), maxAnswerBytes)
	}
	// Into a map, because the names must be exact.
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil {
		return malformed("no JSON object")
	}
	var answered string
	if json.Unmarshal(members["id"], &answered) != nil || answered != id {
		return malformed("not the request's id")
	}
	raw, failure := present(members["result"]), present(members["error"])
	switch {
	case (raw == nil) == (failure == nil):
		return malformed("not exactly one of result and error")
	case failure != nil:
		return refusal(method, failure)
	case raw[0] != '{':
		return malformed("a result that is no object")
	case result == nil:
		return nil
	case json.Unmarshal(raw, result) != nil:
		return malformed("a result of another shape than the method's")
	}
	return nil
}

// present gives a member that is there and not null.
func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func malformed(what string) error {
	return domain.Errorf(domain.CodeHubError, "the hub's answer cannot be read: %s", what)
}

// refusal translates a hub's error.
func refusal(method string, raw json.RawMessage) error {
	var members map[string]json.RawMessage
	var kind, message string
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members["type"], &kind) != nil {
		return malformed("an error without a type")
	}
	_ = json.Unmarshal(members["message"], &message) // without a message the type says it
	code := domain.Code(kind)
	allowed, _ := errorsOf(method)
	if code != domain.CodeHubUnavailable && !slices.Contains(allowed, code) {
		code = domain.CodeHubError
	}
	if message = printable(message); message == "" {
		message = "the hub says so without giving a reason"
	}
	return domain.Errorf(code, "%s", message)
}

// printable cuts a hub's words down to what may be shown to an API caller.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	for len(s) > maxMessage {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return strings.TrimSpace(s)
}
