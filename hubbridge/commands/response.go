package commands

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
	// maxAnswerBytes bounds an answer: many times the size of a list of hundreds of devices.
	maxAnswerBytes = 1 << 20
	// maxMessageBytes bounds the part of a hub's error message that API callers see.
	maxMessageBytes = 300
)

// decode decodes a hub's answer to the request with the id and passes the result to read, unless
// read is nil. Its error is the hub's own, or hub_error if the answer is invalid or read fails.
func decode(method, id string, payload []byte, read func(result []byte) error) error {
	if len(payload) > maxAnswerBytes {
		return domain.Errorf(
			domain.CodeHubError, "the hub answered with %d bytes; at most %d are allowed",
			len(payload), maxAnswerBytes,
		)
	}
	response, err := codec.ParseResponse(payload)
	switch {
	case err != nil:
	case response.ID != id:
		err = errors.New("its id is not the request's")
	case response.Result == nil:
		return hubError(method, response.Error)
	case read != nil:
		err = read(response.Result)
	}
	if err != nil {
		return domain.Errorf(domain.CodeHubError, "the hub's answer is not valid: %v", err)
	}
	return nil
}

// hubError translates an error that a hub answered. An error that the method does not define is a
// hub_error.
func hubError(method string, answered protocol.Error) error {
	code := domain.Code(answered.Type)
	allowed, _ := protocol.ErrorsOf(method)
	if code != domain.CodeHubUnavailable && !slices.Contains(allowed, answered.Type) {
		code = domain.CodeHubError
	}
	message := printable(answered.Message)
	if message == "" {
		message = "the hub gave no reason"
	}
	return domain.Errorf(code, "%s", message)
}

// printable removes what is not printable from a hub's message and cuts it to maxMessageBytes.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	for len(s) > maxMessageBytes {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return strings.TrimSpace(s)
}
