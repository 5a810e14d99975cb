package calls

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
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
	case protocol.MethodDevicesGet:
		return []domain.Code{domain.CodeNotFound}, true
	case protocol.MethodDevicesForget:
		return []domain.Code{domain.CodeNotFound, domain.CodeInvalidRequest}, true
	case protocol.MethodChannelsCommand:
		return []domain.Code{
			domain.CodeNotFound,
			domain.CodeInvalidRequest,
			domain.CodeCommandRefused,
		}, true
	case protocol.MethodPairingOpen:
		return []domain.Code{domain.CodeInvalidRequest}, true
	case protocol.MethodDevicesList,
		protocol.MethodPairingClose,
		protocol.MethodRemovalOpen,
		protocol.MethodRemovalClose:
		return nil, true
	}
	return nil, false
}

// decode reads a hub's answer to a request of that id: read, which may be nil, gets the result, and
// its error says why it is none of the method. It gives the hub's refusal, or hub_error for what is
// no answer to the request.
func decode(method, id string, payload []byte, read func(result []byte) error) error {
	if len(payload) > maxAnswerBytes {
		return domain.Errorf(
			domain.CodeHubError, "the hub answered with %d bytes; at most %d are taken",
			len(payload), maxAnswerBytes,
		)
	}
	answer, err := codec.ParseAnswer(payload)
	switch {
	case err != nil:
	case answer.ID != id:
		err = errors.New("it is not of the request's id")
	case answer.Result == nil:
		return refused(method, answer.Refusal)
	case read != nil:
		err = read(answer.Result)
	}
	if err != nil {
		return domain.Errorf(domain.CodeHubError, "the hub's answer cannot be read: %v", err)
	}
	return nil
}

// refused translates a hub's refusal.
func refused(method string, refusal protocol.Error) error {
	code := domain.Code(refusal.Type)
	allowed, _ := errorsOf(method)
	if code != domain.CodeHubUnavailable && !slices.Contains(allowed, code) {
		code = domain.CodeHubError
	}
	message := printable(refusal.Message)
	if message == "" {
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
