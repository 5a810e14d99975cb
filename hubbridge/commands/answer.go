package commands

import (
	"encoding/json"
	"errors"
	"fmt"

	"hubcloud/domain"
)

// answer is a final answer as the reservation stores it: either the channel from the hub's answer,
// or the hub's error.
type answer struct {
	Channel *domain.Channel `json:"channel,omitempty"`
	Code    domain.Code     `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
}

// finalAnswer returns the answer to remember; nil if the same command, sent again, may have another
// outcome.
func finalAnswer(channel domain.Channel, err error) *answer {
	if err == nil {
		return &answer{Channel: &channel}
	}
	var apiError *domain.Error
	if !errors.As(err, &apiError) {
		return nil
	}
	switch apiError.Code {
	case domain.CodeNotFound, domain.CodeInvalidRequest, domain.CodeCommandRefused:
		return &answer{Code: apiError.Code, Message: apiError.Message}
	default:
		return nil
	}
}

// restoreAnswer returns a remembered answer as it was returned the first time.
func restoreAnswer(remembered []byte) (domain.Channel, error) {
	var a answer
	if err := json.Unmarshal(remembered, &a); err != nil {
		return domain.Channel{}, fmt.Errorf("commands: decode remembered answer: %w", err)
	}
	if a.Channel == nil {
		return domain.Channel{}, &domain.Error{Code: a.Code, Message: a.Message}
	}
	return *a.Channel, nil
}
